import { describe, expect, test } from 'bun:test';
import {
  chooseAnswer,
  contentTypeOf,
  customHeaders,
  type FileAnswer,
  isHtml,
} from '../../../src/features/cdn/rules.ts';

const FILE = { content_id: 'x', content_type: 'text/plain', content_length: 2_000, is_encoded: false };
const PICTURE = { ...FILE, content_type: 'image/png' };
const ENCODED = { ...FILE, is_encoded: true };
const UNCHANGED = { kind: 'unchanged', etag: '"x"' } as const;
const WHOLE = { kind: 'whole', encoding: undefined } as const;

type Case = [name: string, method: string, headers: Record<string, string>, file: typeof FILE, answer: FileAnswer];
const CASES: Case[] = [
  ['a known file', 'GET', { 'if-none-match': '"x"' }, FILE, UNCHANGED],
  ['a known file, by a weak tag of several', 'GET', { 'if-none-match': '"y", W/"x"' }, FILE, UNCHANGED],
  ['any known file', 'HEAD', { 'if-none-match': '*' }, FILE, UNCHANGED],
  ['a known file and a range', 'GET', { 'if-none-match': '"x"', range: 'bytes=0-9' }, FILE, UNCHANGED],
  [
    'a known compressed file',
    'GET',
    { 'if-none-match': '"x.br"', 'accept-encoding': 'br' },
    FILE,
    { kind: 'unchanged', etag: '"x.br"' },
  ],
  ['a file that was known in another encoding', 'GET', { 'if-none-match': '"x.br"' }, FILE, WHOLE],
  ['a file', 'GET', {}, FILE, WHOLE],
  ['a compressed file', 'GET', { 'accept-encoding': 'br' }, FILE, { kind: 'whole', encoding: 'br' }],
  ['a compressed picture', 'GET', { 'accept-encoding': 'br' }, PICTURE, WHOLE],
  ['a file that was uploaded compressed', 'GET', { 'accept-encoding': 'br' }, ENCODED, WHOLE],
  ['a range', 'GET', { range: 'bytes=0-9' }, FILE, { kind: 'part', range: { start: 0, end: 9 } }],
  [
    'a range, never compressed',
    'GET',
    { range: 'bytes=-5', 'accept-encoding': 'br' },
    FILE,
    { kind: 'part', range: { start: 1_995, end: 1_999 } },
  ],
  ['a range after the end', 'GET', { range: 'bytes=2000-' }, FILE, { kind: 'unsatisfiable' }],
  ['a malformed range', 'GET', { range: 'bytes=x' }, FILE, WHOLE],
  ['several ranges', 'GET', { range: 'bytes=0-1,5-6' }, FILE, WHOLE],
  ['a range of another version', 'GET', { range: 'bytes=0-9', 'if-range': '"y"' }, FILE, WHOLE],
  ['a range by HEAD', 'HEAD', { range: 'bytes=0-9' }, FILE, WHOLE],
];

describe('cdn: the answer to a request for', () => {
  test.each(CASES)('%s', (_, method, headers, file, answer) => {
    expect(chooseAnswer({ method, headers: new Headers(headers) }, file)).toEqual(answer);
  });
});

describe('cdn: the content type', () => {
  const TYPES: [announced: string, sent: string, is_html: boolean, is_compressed: boolean][] = [
    ['text/html', 'text/html; charset=utf-8', true, true],
    ['Text/HTML', 'Text/HTML; charset=utf-8', true, true],
    ['text/html; Charset=ISO-8859-1', 'text/html; Charset=ISO-8859-1', true, true],
    ['text/x-charset', 'text/x-charset; charset=utf-8', false, true],
    ['Application/XHTML+XML', 'Application/XHTML+XML', true, true],
    ['Application/JSON', 'Application/JSON; charset=utf-8', false, true],
    ['model/gltf+json', 'model/gltf+json', false, true],
    ['image/SVG+xml', 'image/SVG+xml; charset=utf-8', false, true],
    ['image/png; profile=a+xml', 'image/png; profile=a+xml', false, false],
    ['Image/PNG', 'Image/PNG', false, false],
  ];
  test.each(TYPES)('%s is sent as %s', (announced, sent, is_html, is_compressed) => {
    const content_type = contentTypeOf('file', announced);
    expect(content_type).toBe(sent);
    expect(isHtml(content_type)).toBe(is_html);
    const request = { method: 'GET', headers: new Headers({ 'accept-encoding': 'br' }) };
    const encoding = is_compressed ? 'br' : undefined;
    expect(chooseAnswer(request, { ...FILE, content_type })).toEqual({ kind: 'whole', encoding });
  });
});

test('cdn: a route that negates a path leaves it out, also with a slash in front', () => {
  const headers = [{ name: 'x-public', value: 'yes' }];
  for (const glob of ['!private/**', '!/private/**']) {
    const routes = [{ glob, priority: 0, middlewares: [{ kind: { custom_headers: { headers } } }] }];
    expect(customHeaders('private/a.txt', routes)).toEqual([]);
    expect(customHeaders('a.txt', routes)).toEqual([['x-public', 'yes']]);
  }
});
