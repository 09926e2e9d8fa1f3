import { describe, expect, it } from 'vitest';
import { raw, reply, startModelServer } from '@treadle/testkit';
import { baseUrlOf, callOnce, gatewayTo, requestOf, toolNamed, wires } from '../testing.ts';
import { readArguments } from './tool-arguments.ts';

const free = toolNamed('list_items');
const strict = toolNamed('save', { type: 'object', properties: { k: { type: 'string' } }, required: ['k'] });

describe('arguments', () => {
  it.each([
    ['an object', { a: 3 }], ['JSON text', '{"a":3}'], ['JSON text of JSON text', JSON.stringify('{"a":3}')],
  ])('are taken as %s', (_, args) => {
    expect(readArguments(args, free)).toEqual({ input: { a: 3 }, problem: null });
  });

  it.each([[''], ['  '], [null], [undefined], ['null'], ['""']])('of nothing (%j) are {} for a tool that requires nothing, and for an unknown one', (args) => {
    expect(readArguments(args, free)).toEqual({ input: {}, problem: null });
    expect(readArguments(args, undefined)).toEqual({ input: {}, problem: null });
  });

  it.each([[''], [null], ['null']])('of nothing (%j) are a problem for a tool that requires some', (args) => {
    expect(readArguments(args, strict)).toEqual({ input: {}, problem: 'The arguments are missing. Required: k.' });
  });

  it.each([
    ['5', 'a number: 5'], [5, 'a number: 5'], ['"text"', 'not valid JSON: text'], ['[1]', 'a list: [1]'], [[1], 'a list: [1]'], [true, 'a boolean: true'],
    ['{"path":"a.txt","text":"hel', 'not valid JSON: {"path":"a.txt","text":"hel'], [JSON.stringify(JSON.stringify('{"a":3}')), 'a string'],
  ])('that are no object (%j) are told to the model', (args, words) => {
    const { input, problem } = readArguments(args, strict);
    expect(input).toEqual({});
    expect(problem).toContain(words);
  });

  it('too deep or too large are not cut to size, which would be other arguments', () => {
    const deep = `{"a":${'['.repeat(200)}${']'.repeat(200)}}`;
    expect(readArguments(deep, free)).toEqual({ input: {}, problem: 'The arguments are nested deeper than 64 levels.' });
    expect(readArguments({ a: 'x'.repeat(300_000) }, free)).toEqual({ input: {}, problem: 'The arguments are 300008 bytes long; at most 262144 are allowed.' });
  });

  it.each([
    ['{"id":9007199254740993}', '9007199254740993'], ['{"ids":[1,[-123456789012345678901]]}', '-123456789012345678901'], ['{"a":1e999}', '1e999'], [JSON.stringify('{"id":1180000000000000001}'), '1180000000000000001'],
  ])('with a number that would become another one (%s) are told to the model', (args, number) => {
    expect(readArguments(args, free)).toEqual({ input: {}, problem: `The number ${number} is too large to be passed on as it is. Send it as text where the tool takes text.` });
  });

  it.each(wires)('with such a number are not taken as a value either, on %s', async (wire) => {
    const frame = {
      ollama: '{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"list_items","arguments":{"a":[9007199254740993]}}}]},"done":false}\n{"done":true,"done_reason":"stop"}\n',
      openai: 'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"list_items","arguments":{"a":[9007199254740993]}}}]},"finish_reason":"tool_calls"}]}\n\n',
      anthropic: 'data: {"type":"message_start","message":{}}\n\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"list_items","input":{"a":[9007199254740993]}}}\n\ndata: {"type":"message_stop"}\n\n',
    }[wire];
    const server = await startModelServer({ dialect: wire, script: [raw([frame])] });
    const gateway = gatewayTo(baseUrlOf(wire, server.url));
    const { outcome } = await callOnce(gateway, requestOf({ tools: [free] }, wire));
    expect(outcome).toMatchObject({ reply: { calls: [{ input: {}, problem: expect.stringContaining('The number 9007199254740993 is too large') as string }] } });
    gateway.close();
    await server.close();
  });

  it.each([
    ['{"id":9007199254740992}', { id: 2 ** 53 }], ['{"id":"9007199254740993"}', { id: '9007199254740993' }], ['{"a":0.12345678901234567890,"b":1e20,"c":-0}', { a: 0.12345678901234568, b: 1e20, c: -0 }],
    ['{"9007199254740993":1}', { '9007199254740993': 1 }],
  ])('%s are taken as they are read', (args, input) => {
    expect(readArguments(args, free)).toEqual({ input, problem: null });
  });

  it('hold no half characters', () => {
    expect(readArguments(String.raw`{"a":"\ud800"}`, free).input).toEqual({ a: '�' });
  });
});

describe('calls in a reply', () => {
  it('keep their order and names, and go without an id where the server gave none', async () => {
    const server = await startModelServer({
      dialect: 'ollama', script: [
        reply({ text: 'First', calls: [{ id: null, name: 'weather', args: { city: 'Paris' } }, { id: 'x', name: 'weather', args: { city: 'Rome' } }] }),
        raw(['{"message":{"tool_calls":[{"function":{"name":"weather"}}]}}\n', '{"message":{"tool_calls":[{},7]}}\n{"done":true,"done_reason":"stop"}']),
        reply({ calls: [{ id: 'x', name: 'weather', args: {} }], done_reason: 'length' }),
      ],
    });
    const gateway = gatewayTo(server.url);
    const request = requestOf({ tools: [toolNamed('weather')] });
    const outcomes = [];
    for (let call = 0; call < 3; call++) outcomes.push((await callOnce(gateway, request)).outcome);
    expect(outcomes[0]).toMatchObject({
      reply: {
        text: 'First', finish: 'tool_calls', finish_raw: 'stop',
        calls: [
          { provider_id: null, name: 'weather', input: { city: 'Paris' }, problem: null },
          { provider_id: 'x', name: 'weather', input: { city: 'Rome' }, problem: null },
        ],
      },
    });
    expect(outcomes[1]).toMatchObject({ reply: { calls: [{ name: 'weather', input: {} }, { name: 'unnamed_tool' }, { name: 'unnamed_tool' }] } });
    expect(outcomes[2]).toMatchObject({ reply: { finish: 'length', finish_raw: 'length' } });
    server.assertUsedUp();
    gateway.close();
    await server.close();
  });
});
