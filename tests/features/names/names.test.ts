import { describe, expect, test } from 'bun:test';
import {
  describeProblem,
  displayNameProblem,
  isBio,
  isLenientNameId,
  isNameId,
  nameIdProblem,
  refuseProblems,
} from '../../../src/features/names.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { refusalOf } from '../../support/refusal.ts';

describe('name ids', () => {
  const CASES: [string, ReturnType<typeof nameIdProblem>][] = [
    ['', 'too-short'],
    ['x'.repeat(17), 'too-long'],
    ['é'.repeat(9), 'too-long'],
    ['A', 'invalid'],
    ['a_b', 'invalid'],
    ['a.b', 'invalid'],
    ['a b', 'invalid'],
    ['a\n', 'invalid'],
    ['-', 'invalid'],
    ['-a', 'invalid'],
    ['a-', 'invalid'],
    ['a--b', 'invalid'],
    ['é', 'invalid'],
    ['x'.repeat(16), undefined],
    ['0', undefined],
    ['a-1-b', undefined],
  ];
  for (const [text, problem] of CASES) {
    test(`${JSON.stringify(text)}: ${problem ?? 'valid'}`, () => {
      expect(nameIdProblem(text)).toBe(problem);
      expect(isNameId(text)).toBe(problem === undefined);
    });
  }

  test('of game modes may have capitals and underscores, and up to 64 bytes', () => {
    for (const text of ['A', 'a_b', '__', 'x'.repeat(64), 'Team-Deathmatch_2'])
      expect(isLenientNameId(text)).toBe(true);
    for (const text of ['', 'x'.repeat(65), '-A', 'A-', 'A--B', 'A B', 'A.B', 'A\n', 'Ä']) {
      expect(isLenientNameId(text)).toBe(false);
    }
  });
});

describe('display names', () => {
  const CASES: [string, ReturnType<typeof displayNameProblem>][] = [
    ['', 'too-short'],
    ['x'.repeat(25), 'too-long'],
    ['é'.repeat(13), 'too-long'],
    [' ', 'invalid'],
    [' x', 'invalid'],
    ['x ', 'invalid'],
    ['x  y', 'invalid'],
    ['x\ty', 'invalid'],
    ['x\ny', 'invalid'],
    ['x\n', 'invalid'],
    ['x\u00a0y', 'invalid'],
    ['x\u2028y', 'invalid'],
    ['x\u0000y', 'invalid'],
    ['x\u001by', 'invalid'],
    ['x\u200by', 'invalid'],
    ['x\u202ey', 'invalid'],
    ['\ufeffx', 'invalid'],
    ...[...'\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0'].flatMap((blank): [string, 'invalid'][] => [
      [blank, 'invalid'],
      [`x${blank}`, 'invalid'],
    ]),
    ['\ufe0f', 'invalid'],
    ['\u0301', 'invalid'],
    ['x\u0301', undefined],
    ['\u2764\ufe0f', undefined],
    ['x'.repeat(24), undefined],
    ['é'.repeat(12), undefined],
    ['Böse Wölfe, 3. Liga!', undefined],
    ['狼 と 👾', undefined],
  ];
  for (const [text, problem] of CASES) {
    test(`${JSON.stringify(text)}: ${problem ?? 'valid'}`, () => {
      expect(displayNameProblem(text, 24)).toBe(problem);
    });
  }
});

describe('bios', () => {
  const REFUSED = [
    'x'.repeat(201),
    'é'.repeat(101),
    'a\nb\nc\nd\ne\nf',
    '\n\n\n\n\n\n',
    'a\r\nb',
    'a\tb',
    'a\u202eb',
    'a\u001bb',
  ];
  const ACCEPTED = [
    '',
    ' ',
    'x'.repeat(200),
    'a\nb\nc\nd\ne',
    'a\nb\nc\nd\ne\n',
    '\n\n\n\n\n',
    'a\n\n\n\nb',
    ' two  blanks ',
  ];
  for (const text of REFUSED) {
    test(`${JSON.stringify(text.slice(0, 20))} is refused`, () => {
      expect(isBio(text)).toBe(false);
    });
  }
  for (const text of ACCEPTED) {
    test(`${JSON.stringify(text.slice(0, 20))} is valid`, () => {
      expect(isBio(text)).toBe(true);
    });
  }

  test('that would backtrack in a pattern are refused quickly', () => {
    for (const end of ['\r', '\t', '\u2028']) expect(isBio(`${'a'.repeat(197)}${end}`)).toBe(false);
  });
});

test('names: the message has the advice that matches the most of a path, and the plain path without advice', () => {
  const advice = new Map([
    ['too-high', 'less'],
    ['*.too-high', 'less of it'],
    ['ports.*.too-high', 'at most 9'],
  ]);
  const describe = (...path: string[]) => describeProblem({ path }, advice);
  expect(describe('config', 'ports', '*game*', 'too-high')).toBe('config.ports.*game*.too-high (at most 9)');
  expect(describe('ports', '12', 'too-high')).toBe('ports.12.too-high (at most 9)');
  expect(describe('*a\nb*', 'too-high')).toBe('*a\nb*.too-high (less of it)');
  expect(describe('count', 'too-high')).toBe('count.too-high (less)');
  expect(describe('count', 'too-low')).toBe('count.too-low');
});

test('names: problems are reported together, each by its path', () => {
  expect(refuseProblems([])).toBeUndefined();
  const errors = [{ path: ['display-name', 'too-long'] }, { path: ['ports', '0', 'label-invalid'] }];
  const refusal = refusalOf(ServiceError, () => refuseProblems(errors));
  expect(refusal).toMatchObject({
    code: 'VALIDATION_ERROR',
    message:
      'The request has invalid content: display-name.too-long (at most 24 bytes for a game, group or person, and 128 for others), ports.0.label-invalid (only lower-case letters and digits, with single dashes between them; at most 16 characters).',
    metadata: { errors },
  });
});
