import { describe, expect, it } from 'vitest';
import { plainSchema } from './plain-schema.ts';

const object = (properties: object, rest: object = {}) => ({ type: 'object', properties, ...rest });

describe('a plain schema', () => {
  it('has references put in where they point, with what stands beside them', () => {
    const schema = object({ q: { $ref: '#/$defs/Query', description: 'Mine.' } }, { $defs: { Query: object({ limit: { $ref: '#/definitions/n~1m' } }) }, definitions: { 'n/m': { type: 'integer', description: 'A number.' } } });
    expect(plainSchema(schema)).toEqual(object({ q: { type: 'object', description: 'Mine.', properties: { limit: { type: 'integer', description: 'A number.' } } } }));
  });

  it('cuts a recursion at its second round', () => {
    const schema = object({ tree: { $ref: '#/$defs/Tree' } }, { $defs: { Tree: object({ name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/Tree' } } }) } });
    expect(plainSchema(schema)).toEqual(object({ tree: object({ name: { type: 'string' }, children: { type: 'array', items: {} } }) }));
    expect(plainSchema({ $ref: '#' })).toEqual(object({}));
  });

  it('does not grow without bound', () => {
    const $defs = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`d${index}`, object({ a: { $ref: `#/$defs/d${index + 1}` }, b: { $ref: `#/$defs/d${index + 1}` } })]));
    expect(JSON.stringify(plainSchema({ $ref: '#/$defs/d0', $defs })).length).toBeLessThan(500_000);
  });

  it('loses references that lead nowhere', () => {
    expect(plainSchema(object({ a: { $ref: '#/$defs/gone', description: 'kept' }, b: { $ref: 'https://example.com/s.json' }, c: { $ref: '#/constructor' }, d: { $ref: '#/%zz' } }))).toEqual(object({ a: { description: 'kept' }, b: {}, c: {}, d: {} }));
  });

  it('has no anchors, and no words that only some compiler knows', () => {
    expect(plainSchema(object({ a: { $dynamicRef: '#node', description: 'kept' }, b: { $recursiveRef: '#', $recursiveAnchor: true } }, { $async: true, $dynamicAnchor: 'node', $vocabulary: {} }))).toEqual(object({ a: { description: 'kept' }, b: {} }));
  });

  it('tells patterns and formats in words', () => {
    expect(plainSchema(object({ a: { type: 'string', pattern: '^\\d+$', description: 'Digits.' }, b: { type: 'string', format: 'date' } }, { $schema: 'x', $id: 'y', $comment: 'z' }))).toEqual(
      object({ a: { type: 'string', description: 'Digits. (pattern: ^\\d+$)' }, b: { type: 'string', description: '(format: date)' } }));
  });

  it('does not take a property for a keyword, nor data for schemas', () => {
    const schema = object({ format: { type: 'string' }, pattern: { type: 'string' }, $ref: { type: 'string' }, id: { type: 'string' }, e: { enum: ['x'], default: { format: 'kept' } } }, { required: ['format'] });
    expect(plainSchema(schema)).toEqual(schema);
  });

  it('is of a draft that is still taken', () => {
    expect(plainSchema(object({ a: { type: 'number', minimum: 1, exclusiveMinimum: true }, b: { type: 'array', items: [{ type: 'string' }] } }))).toEqual(object({ a: { type: 'number', minimum: 1 }, b: { type: 'array', prefixItems: [{ type: 'string' }] } }));
  });

  it('is one object at the top, with all that its branches offer', () => {
    const branch = (name: string) => object({ [name]: { type: 'string' } }, { required: [name] });
    expect(plainSchema({ anyOf: [branch('a'), branch('b')] })).toEqual(object({ a: { type: 'string' }, b: { type: 'string' } }));
    expect(plainSchema({ ...branch('c'), allOf: [branch('a'), branch('b')] })).toEqual(object({ a: { type: 'string' }, b: { type: 'string' }, c: { type: 'string' } }, { required: ['c', 'a', 'b'] }));
    expect(plainSchema({})).toEqual(object({}));
  });

  it('keeps combinations inside', () => {
    const schema = object({ a: { anyOf: [{ type: 'string' }, { type: 'null' }] } }, { additionalProperties: false });
    expect(plainSchema(schema)).toEqual(schema);
  });
});
