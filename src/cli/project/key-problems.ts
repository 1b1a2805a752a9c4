import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { distance } from 'fastest-levenshtein';
import schema from '../../../docs/muster.schema.json' with { type: 'json' };
import { isUuid } from '../../shared/uuid.ts';
import { ELSEWHERE } from './project-shape.ts';

/** Letters by which a misspelt key may differ from the right one. */
const SLIPS_MAX = 2;

let validate: ValidateFunction | undefined;

/** Returns what is wrong with the keys of a project: a sentence for each key, which names it. */
export function keyProblems(value: unknown): string[] {
  validate ??= new Ajv({ allErrors: true, verbose: true, formats: { uuid: isUuid } }).compile(schema);
  if (validate(value)) return [];
  return [...new Set((validate.errors ?? []).map(describe))];
}

function describe({ instancePath, keyword, params, parentSchema, message, data }: ErrorObject): string {
  const path = instancePath.split('/').slice(1).map(fromPointer);
  const subject = path.join('.') || 'the file';
  switch (keyword) {
    case 'additionalProperties': {
      const key = String(params.additionalProperty);
      return describeUnknown([...path, key].join('.'), key, Object.keys(parentSchema?.properties ?? {}));
    }
    case 'required':
      return `${[...path, params.missingProperty].join('.')} is missing`;
    case 'type':
      if (subject === 'build' && typeof data === 'string')
        return `build is ${JSON.stringify(data)}, but must be a map: write build: { path: ${data} }`;
      return `${subject} ${message ?? 'is wrong'}`;
    case 'enum':
      return `${subject} is ${JSON.stringify(data)}, but must be one of ${params.allowedValues.join(', ')}`;
    case 'pattern':
      return `${subject} is ${JSON.stringify(data)}, which is invalid. ${parentSchema?.description ?? ''}`.trimEnd();
    default:
      return `${subject} ${message ?? 'is wrong'}`;
  }
}

function describeUnknown(subject: string, key: string, keys: string[]): string {
  const elsewhere = Object.hasOwn(ELSEWHERE, key) ? ELSEWHERE[key] : undefined;
  if (elsewhere !== undefined) return `${subject} has no use here: ${elsewhere}`;
  const nearest = keys.toSorted((one, other) => distance(key, one) - distance(key, other))[0] ?? '';
  const is_slip = distance(key, nearest) <= Math.min(SLIPS_MAX, key.length - 1);
  return `${subject} is unknown; ${is_slip ? `did you mean ${nearest}?` : `the keys are ${keys.join(', ')}`}`;
}

/** Unescapes a part of a JSON pointer (RFC 6901). */
function fromPointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
