import { describe, expect, it } from 'vitest';
import { resolvableSchema } from './schema.ts';

describe('a schema', () => {
  it('is passed on as it is while its references resolve', () => {
    const schema = {
      type: 'object', properties: { q: { $ref: '#/$defs/Query' }, again: { $ref: '#' } }, required: ['q'], additionalProperties: false,
      $defs: { Query: { type: 'object', properties: { limit: { type: 'integer' }, 'a/b': { $ref: '#/$defs/x~1y' } } }, 'x/y': { type: 'string' } },
    };
    expect(resolvableSchema(schema)).toEqual(schema);
  });

  it('loses references that lead nowhere, and nothing else', () => {
    const schema = { type: 'object', properties: { a: { $ref: '#/$defs/gone', description: 'kept' }, b: { $ref: 'https://example.com/s.json' }, c: { $ref: '#/constructor' }, d: { $ref: '#/%zz' } } };
    expect(resolvableSchema(schema)).toEqual({ type: 'object', properties: { a: { description: 'kept' }, b: {}, c: {}, d: {} } });
  });

  it('loses anchors, too', () => {
    expect(resolvableSchema({ type: 'object', properties: { a: { $dynamicRef: '#node' }, b: { $recursiveRef: '#' } } })).toEqual({ type: 'object', properties: { a: {}, b: { $recursiveRef: '#' } } });
  });

  it('does not take data for schemas, nor a property for a keyword', () => {
    const schema = { type: 'object', properties: { $ref: { type: 'string' }, enum: { $ref: '#/nowhere' }, e: { enum: ['$ref', { $ref: '#/x' }] } } };
    expect(resolvableSchema(schema)).toEqual({ type: 'object', properties: { $ref: { type: 'string' }, enum: {}, e: { enum: ['$ref', { $ref: '#/x' }] } } });
  });

  it('becomes an object schema where it does not say so', () => {
    expect(resolvableSchema({})).toEqual({ type: 'object' });
  });
});
