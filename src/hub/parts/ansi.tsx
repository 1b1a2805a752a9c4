import { type Color, createColorPalette, type ParseToken, parseAnsiSequences } from 'ansi-sequence-parser';

const palette = createColorPalette();
/** Sequences of terminals but for colours: they move a cursor or clear a line, which a log has not. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: sequences begin with a control character
const NOT_COLOURS = /\u001b(?:\[[0-9;?]*[A-Za-ln-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g;

/** A line with the colours of its terminal sequences, and the places marked that contain a text. */
export function Ansi({ text, highlight }: { text: string; highlight: string }) {
  if (!text.includes('\u001b')) return <Marked text={text} highlight={highlight} />;
  return (
    <>
      {parseAnsiSequences(text.replace(NOT_COLOURS, '')).map((token, place) => (
        <span key={place} class={classOf(token)} style={styleOf(token)}>
          <Marked text={token.value} highlight={highlight} />
        </span>
      ))}
    </>
  );
}

function Marked({ text, highlight }: { text: string; highlight: string }) {
  if (highlight === '') return <>{text}</>;
  const places = placesOf(text.toLowerCase(), highlight.toLowerCase());
  const ends = [0, ...places.map((place) => place + highlight.length)];
  return (
    <>
      {ends.map((end, index) => {
        const place = places[index];
        return (
          <span key={end}>
            {text.slice(end, place)}
            {place !== undefined && <mark>{text.slice(place, place + highlight.length)}</mark>}
          </span>
        );
      })}
    </>
  );
}

function placesOf(text: string, wanted: string): number[] {
  const places: number[] = [];
  for (let place = text.indexOf(wanted); place >= 0; place = text.indexOf(wanted, place + wanted.length)) {
    places.push(place);
  }
  return places;
}

/** The sixteen named colours have classes, which fit the page's light or dark background. */
function classOf({ foreground, background, decorations }: ParseToken): string {
  const names = [
    foreground?.type === 'named' && `ansi-${foreground.name}`,
    background?.type === 'named' && `ansi-on-${background.name}`,
    ...[...decorations].map((decoration) => `ansi-${decoration}`),
  ];
  return names.filter((name) => name !== false).join(' ');
}

function styleOf({ foreground, background }: ParseToken) {
  return { color: exactColour(foreground), background: exactColour(background) };
}

function exactColour(colour: Color | null): string | undefined {
  return colour === null || colour.type === 'named' ? undefined : palette.value(colour);
}
