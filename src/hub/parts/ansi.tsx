import { type Color, createColorPalette, type ParseToken, parseAnsiSequences } from 'ansi-sequence-parser';

const palette = createColorPalette();
/** The sequences of terminals that are not about colors. They move a cursor or clear a line, which means nothing in a log. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: sequences begin with a control character
const NOT_COLORS = /\u001b(?:\[[0-9;?]*[A-Za-ln-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g;

/** A line with the colors of its terminal sequences, and the parts marked that match a text. */
export function Ansi({ text, highlight }: { text: string; highlight: string }) {
  if (!text.includes('\u001b')) return <Marked text={text} highlight={highlight} />;
  return (
    <>
      {parseAnsiSequences(text.replace(NOT_COLORS, '')).map((token, index) => (
        <span key={index} class={classOf(token)} style={styleOf(token)}>
          <Marked text={token.value} highlight={highlight} />
        </span>
      ))}
    </>
  );
}

function Marked({ text, highlight }: { text: string; highlight: string }) {
  if (highlight === '') return <>{text}</>;
  // Not in the text in lower case: some letters are longer there, so positions would differ.
  const found = [...text.matchAll(new RegExp(escapeForRegExp(highlight), 'giu'))];
  const ends = [0, ...found.map(({ index, 0: match }) => index + match.length)];
  return (
    <>
      {ends.map((end, number) => {
        const match = found[number];
        return (
          <span key={end}>
            {text.slice(end, match?.index)}
            {match && <mark>{match[0]}</mark>}
          </span>
        );
      })}
    </>
  );
}

function escapeForRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

/** The sixteen named colors have classes, which fit the page's light or dark background. */
function classOf({ foreground, background, decorations }: ParseToken): string {
  const names = [
    foreground?.type === 'named' && `ansi-${foreground.name}`,
    background?.type === 'named' && `ansi-on-${background.name}`,
    ...[...decorations].map((decoration) => `ansi-${decoration}`),
  ];
  return names.filter((name) => name !== false).join(' ');
}

function styleOf({ foreground, background }: ParseToken) {
  return { color: exactColor(foreground), background: exactColor(background) };
}

function exactColor(color: Color | null): string | undefined {
  return color === null || color.type === 'named' ? undefined : palette.value(color);
}
