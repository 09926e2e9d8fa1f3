import { expect, test } from 'vitest';
import { usualSchema } from './usual-schema.ts';

test.each<[string, object, object]>([
  ['null where there is nothing to say', { type: 'object', properties: null, required: null, title: null, $defs: null }, { type: 'object' }],
  ['null for a property', { type: 'object', properties: { a: null, b: { type: 'string', enum: ['x', null], default: null } } }, { type: 'object', properties: { b: { type: 'string', enum: ['x', null], default: null } } }],
  ['null in a list of schemas', { anyOf: [{ type: 'string', description: null }, true] }, { anyOf: [{ type: 'string' }, true] }],
  ['properties that are named like keywords', { properties: { required: { type: 'boolean' }, default: { type: 'string', title: null } } }, { properties: { required: { type: 'boolean' }, default: { type: 'string' } } }],
  ['data that looks like a schema', { const: { required: null, exclusiveMinimum: true } }, { const: { required: null, exclusiveMinimum: true } }],
  ['excluded bounds of draft 4', { minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false }, { exclusiveMinimum: 0, maximum: 9 }],
  ['an excluded bound that is not there', { exclusiveMaximum: true }, {}],
  ['a property that is required by its own word', { properties: { a: { type: 'string', required: true } }, required: ['a'] }, { properties: { a: { type: 'string' } }, required: ['a'] }],
])('%s', (_, given, made) => {
  expect(usualSchema(given)).toEqual(made);
});
