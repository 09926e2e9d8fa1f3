/** Which tools ask, and for which of their calls. */
import { describe, expect, test } from 'vitest';
import { asksFor } from '../arguments/asks.ts';
import { createInTime, type InTime } from '../arguments/in-time.ts';
import { createSchemaStore } from '../arguments/schema-store.ts';
import type { OfferedTool } from '../kind.ts';
import { offeredTool } from '../mcp/offered-tool.ts';
import type { ToolPolicySource } from '../sources.ts';
import { buildCatalogue } from './build.ts';

const offered = (over: Partial<OfferedTool> = {}): OfferedTool => ({
  name: 'save', description: 'Saves.', input_schema: { type: 'object', properties: { path: {} } }, effect: null, parallel: null, timeout_ms: null, ...over });
const build = (tool: OfferedTool, policy: ToolPolicySource) => buildCatalogue([{ tools: [tool], problems: [], missing: [] }], { patterns: ['*'], policies: { '*': policy }, defaultTimeoutMs: 1000, schemas: createSchemaStore() });
const ruleOf = (tool: OfferedTool, policy: ToolPolicySource) => build(tool, policy).tools[0]!.approval;
const ofServer = (annotations: object, trusted: boolean): OfferedTool => offeredTool('s', { name: 'x', inputSchema: { type: 'object' }, annotations }, trusted) as OfferedTool;

test('a tool asks for nothing unless the host says so', () => {
  expect(build(offered(), {}).tools[0]).not.toHaveProperty('approval');
  expect(ruleOf(offered(), { approval: 'never', approval_timeout_s: 5 })).toBeUndefined();
  expect(ruleOf(offered(), { approval: 'always' })).toEqual({ timeout_s: null, on_timeout: 'deny' });
  expect(ruleOf(offered(), { approval: 'always', approval_timeout_s: 60, on_approval_timeout: 'expire' })).toEqual({ timeout_s: 60, on_timeout: 'expire' });
  expect(ruleOf(offered({ builtin: 'ask_user' }), { approval: 'always' })).toBeUndefined();
});

describe('destructive', () => {
  test.each<[string, OfferedTool, ToolPolicySource, boolean]>([
    ['a tool that nothing is known of', offered(), {}, true],
    ['a function that only reads', offered({ effect: 'read' }), {}, false],
    ['a function that may be repeated', offered({ effect: 'idempotent' }), {}, true],
    ['a tool that only reads by the host’s word', offered(), { effect: 'read' }, false],
    ['a trusted server’s tool without a hint', ofServer({}, true), {}, true],
    ['a trusted server’s tool that destroys nothing', ofServer({ destructiveHint: false }, true), {}, false],
    ['a trusted server’s tool that destroys', ofServer({ destructiveHint: true }, true), {}, true],
    ['a trusted server’s tool that only reads', ofServer({ readOnlyHint: true }, true), {}, false],
    ['a tool that says it destroys nothing, of a server nobody trusts', ofServer({ destructiveHint: false, readOnlyHint: true }, false), {}, true],
    ['a trusted server’s tool that happens once by the host’s word', ofServer({ destructiveHint: false, readOnlyHint: true }, true), { effect: 'once' }, true],
  ])('%s: %#', (_what, tool, policy, asks) => {
    expect(ruleOf(tool, { ...policy, approval: 'destructive' }) !== undefined).toBe(asks);
  });
});

describe('a rule about an argument', () => {
  let [nowMs, cpu] = [0, 0];
  // On a machine that is busy with other tests, too, each look uses its time up.
  const stopping = createInTime({ monotonicMs: () => nowMs, cpuMs: () => cpu += 10_000 });
  /** Longer than a busy machine may leave a test without its processor. */
  const inTime: InTime = (key, _limitMs, look) => stopping(key, 2000, look);
  const asks = (matches: string, input: Readonly<Record<string, unknown>>): boolean => {
    const [tool] = build(offered(), { approval: { when: { arg: 'path', matches } } }).tools;
    expect(tool!.approval).toMatchObject({ when: { arg: 'path', matches } });
    return asksFor(inTime, tool!, input);
  };

  test.each<[string, Readonly<Record<string, unknown>>, boolean]>([
    ['^/etc', { path: '/etc/passwd' }, true], ['^/etc', { path: '/tmp/etc' }, false], ['^/etc', {}, false], ['^/etc', { other: '/etc' }, false],
    ['^/etc', { path: ['/tmp', '/etc'] }, true], ['^/etc', { path: ['/tmp'] }, false], ['"deep":"/etc"', { path: { deep: '/etc' } }, true],
    ['^5$', { path: 5 }, true], ['true', { path: true }, true], ['^null$', { path: null }, true], ['toString', { toString: 1 }, false],
  ])('/%s/ looks at %j: %s', (matches, input, expected) => {
    expect(asks(matches, input)).toBe(expected);
  });

  test('that takes too long is asked for', () => {
    expect(asks('^(a+)+$', { path: `${'a'.repeat(40)}!` })).toBe(true);
    // The next one is looked at as if nothing had been.
    expect(asks('^b', { path: 'a' })).toBe(false);
    // But not by the same pattern: a reply may hold hundreds of such calls.
    expect(asks('^(a+)+$', { path: 'b' })).toBe(true);
    nowMs += 1000;
    expect(asks('^(a+)+$', { path: 'b' })).toBe(false);
  });

  test('that is not there asks each time, and the run is told', () => {
    const { tools, problems } = build(offered(), { approval: { when: { arg: 'pth', matches: '^/etc' } } });
    expect(tools[0]!.approval).toEqual({ timeout_s: null, on_timeout: 'deny' });
    expect(problems).toEqual(['Every call of save needs approval: it has no argument "pth" that could be looked at.']);
    expect(build(offered({ input_schema: { type: 'object', allOf: [{}] } }), { approval: { when: { arg: 'pth', matches: 'x' } } }).problems).toEqual([]);
  });
});
