import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSchemaStore, type SchemaStore } from '../arguments/schema-store.ts';
import type { OfferedTool } from '../kind.ts';
import { buildCatalogue, type CatalogueRules } from './build.ts';
import { matches, mayMatchBeginning } from './patterns.ts';
import { policyFor } from './policy.ts';
import { wireNames } from './wire-name.ts';

function offered(name: string, over: Partial<OfferedTool> = {}): OfferedTool {
  return { name, description: 'Does it.', input_schema: { type: 'object' }, effect: null, parallel: null, timeout_ms: null, ...over };
}

function build(tools: readonly OfferedTool[], over: Partial<CatalogueRules> = {}) {
  return buildCatalogue([{ tools, problems: [], missing: [] }], { patterns: ['*'], policies: {}, defaultTimeoutMs: 30_000, schemas: createSchemaStore(), ...over });
}

describe('patterns', () => {
  test.each([
    ['files/*', 'files/read', true], ['files/*', 'filesystem/read', false], ['*', 'anything/at/all', true], ['http_get', 'http_get', true],
    ['http_get', 'http_get2', false], ['*/read_*', 'files/read_text', true], ['*/read_*', 'files/write', false], ['a*a', 'a', false], ['a**b', 'ab', true],
    ['*ab*b', 'xab', false], ['', '', true], ['f.les/*', 'files/x', false],
  ])('%s fits %s: %s', (pattern, name, fits) => {
    expect(matches(pattern, name)).toBe(fits);
  });

  test('a name that fits begins with a beginning that may fit', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*'), maxLength: 8 });
    fc.assert(fc.property(word, word.map((text) => text.replaceAll('*', '')), fc.nat(8), (pattern, name, cut) => {
      if (matches(pattern, name)) expect(mayMatchBeginning(pattern, name.slice(0, cut))).toBe(true);
    }));
  });
});

describe('wire names', () => {
  test('are readable where they can be', () => {
    expect([...wireNames(['files/write_file', 'add', 'a b/ü', '1pass/get', '-x', '_y'])]).toEqual([['files/write_file', 'files__write_file'], ['add', 'add'], ['a b/ü', 'a_b___'], ['1pass/get', '_1pass__get'], ['-x', '_-x'], ['_y', '_y']]);
  });

  test('tools that come to the same name all get an ending of their own, in any order', () => {
    const names = ['a/b', 'a__b', 'c'];
    const wire = wireNames(names);
    expect(wire.get('c')).toBe('c');
    expect(wire.get('a/b')).toMatch(/^a__b_[0-9a-f]{8}$/);
    expect(wire.get('a__b')).toMatch(/^a__b_[0-9a-f]{8}$/);
    expect(wire.get('a/b')).not.toBe(wire.get('a__b'));
    expect(Object.fromEntries(wireNames([...names].reverse()))).toEqual(Object.fromEntries(wire));
  });

  test('are legal and different for whatever names there are', () => {
    const name = fc.oneof(fc.string({ minLength: 1, maxLength: 90 }), fc.string({ unit: fc.constantFrom('/', '_', 'a', '.'), minLength: 1, maxLength: 70 }));
    fc.assert(fc.property(fc.uniqueArray(name, { maxLength: 20 }), (names) => {
      const wire = [...wireNames(names).values()];
      expect(wire).toHaveLength(names.length);
      expect(new Set(wire).size).toBe(names.length);
      for (const each of wire) expect(each).toMatch(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/);
    }));
  });
});

describe('the host\'s word', () => {
  test('counts by field, the more exact one first', () => {
    const policies = { 'files/read': { timeout_ms: 5 }, 'files/*': { effect: 'read', timeout_ms: 9 }, '*': { parallel: 'path', effect: 'idempotent' } } as const;
    expect(policyFor(policies, 'files/read')).toEqual({ timeout_ms: 5, effect: 'read', parallel: 'path' });
    expect(policyFor(policies, 'web/get')).toEqual({ parallel: 'path', effect: 'idempotent' });
  });

  test('overrides hints; a tool nobody knows is serial, once', () => {
    const hinted = offered('a', { effect: 'read', parallel: 'parallel', timeout_ms: 77 });
    expect(build([hinted]).tools[0]).toMatchObject({ effect: 'read', parallel: 'parallel', timeout_ms: 77 });
    expect(build([hinted], { policies: { a: { effect: 'once', parallel: 'serial', timeout_ms: 1 } } }).tools[0]).toMatchObject({ effect: 'once', parallel: 'serial', timeout_ms: 1 });
    expect(build([offered('b')]).tools[0]).toMatchObject({ effect: 'once', parallel: 'serial', timeout_ms: 30_000 });
  });
});

test('a tool is polling where the host says so, and nowhere else', () => {
  const tools = build([offered('a'), offered('b'), offered('c')], { policies: { '*': { polling: true }, b: { polling: false } } }).tools;
  expect(tools.map((tool) => tool.polling)).toEqual([true, undefined, true]);
  expect(build([offered('a')]).tools[0]).not.toHaveProperty('polling');
});

describe('the catalogue', () => {
  test('holds what the patterns choose, by name, whatever the order of the offers', () => {
    const tools = [offered('web/get'), offered('files/b'), offered('files/a')];
    const patterns = ['files/*', 'web/get'];
    const names = (list: readonly OfferedTool[]) => build(list, { patterns }).tools.map((tool) => tool.name);
    expect(names(tools)).toEqual(['files/a', 'files/b', 'web/get']);
    expect(names([...tools].reverse())).toEqual(names(tools));
    expect(build(tools, { patterns: ['files/a'] }).tools.map((tool) => tool.name)).toEqual(['files/a']);
  });

  test('has hashes that depend on what a model is shown and on nothing else', () => {
    const hash = (tool: OfferedTool) => build([tool], { policies: {} }).tools[0]!.hash;
    const one = offered('a', { input_schema: { type: 'object', properties: { x: { type: 'string' } } } });
    expect(hash(one)).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(hash({ ...one, input_schema: { properties: { x: { type: 'string' } }, type: 'object' }, effect: 'read' })).toBe(hash(one));
    expect(hash({ ...one, description: 'Other.' })).not.toBe(hash(one));
  });

  test('leaves broken tools out and says so, for chosen ones only', () => {
    const tools = [
      offered('text', { input_schema: { type: 'string' } }), offered('none', { input_schema: undefined }),
      offered('bad', { input_schema: { type: 'object', properties: { a: { type: 'nothing' } } } }), offered('good'), offered('good'),
    ];
    const { tools: kept, problems } = build(tools);
    expect(kept.map((tool) => tool.name)).toEqual(['good']);
    expect(problems).toHaveLength(4);
    expect(problems[0]).toBe('Tool text is left out: its input schema is not of type "object".');
    expect(problems.some((problem) => problem.startsWith('Tool bad is left out: its input schema cannot be used'))).toBe(true);
    expect(problems).toContain('Tool good is left out: its name is taken already.');
    expect(build(tools, { patterns: ['good'] }).problems).toEqual(['Tool good is left out: its name is taken already.']);
  });

  test('names a pattern that fits nothing, but not for a server that could not be asked', () => {
    const offers = [{ tools: [offered('a')], problems: ['MCP server files is away'], missing: ['files/'] }];
    const { problems } = buildCatalogue(offers, { patterns: ['a', 'files/read', 'spwan'], policies: {}, defaultTimeoutMs: 1, schemas: createSchemaStore() });
    expect(problems).toEqual(['MCP server files is away', 'No tool is offered that fits "spwan".']);
  });
});

describe('what a server offers without measure', () => {
  const usable = createSchemaStore();
  const many = Array.from({ length: 10_000 }, (_, index) => offered(`s/t${index}`));

  test('is cut to what a request can carry, and said; tools of the host have their room', () => {
    const { tools, problems } = build([...many, offered('own')]);
    expect(tools).toHaveLength(257);
    expect(tools.map(({ name }) => name)).toContain('own');
    expect(problems).toEqual(['9744 tools are left out: a run may have 256 tools of servers. Let the agent\'s patterns choose fewer.']);
  });

  test('is not read for longer than others can wait; what is known is there all the same', () => {
    let cpu = 0;
    const known = new Set<string>();
    // Each takes 0.7 s to read.
    const schemas: SchemaStore = {
      knows: (hash) => known.has(hash),
      compiled: (hash, schema) => {
        if (!known.has(hash)) cpu += 700;
        known.add(hash);
        return usable.compiled(hash, schema);
      },
    };
    const tools = Array.from({ length: 8 }, (_, index) => offered(`s/t${index}`, { description: `${index}` }));
    const rounds = [1, 2, 3, 4].map(() => buildCatalogue([{ tools, problems: [], missing: [] }], { patterns: ['*'], policies: {}, defaultTimeoutMs: 1, schemas, cpuMs: () => cpu }));
    // A later run begins where the one before had to stop.
    expect(rounds.map((round) => round.tools.length)).toEqual([3, 6, 8, 8]);
    expect(rounds.map(({ problems }) => problems)).toEqual([[3, 4, 5, 6, 7], [6, 7], [], []].map((late) => late.map((index) => `Tool s/t${index} is left out: reading the schemas before it took too long.`)));
  });

  test('is not more than one event can hold; what is small enough is there all the same', () => {
    const heavy = (index: number, characters: number) => offered(`s/h${index}`, { characters });
    const { tools, problems } = build([offered('own'), heavy(0, 400_000), heavy(1, 124_289), heavy(2, 124_288), heavy(3, 1), heavy(4, 0)]);
    expect(tools.map(({ name }) => name)).toEqual(['own', 's/h0', 's/h2', 's/h4']);
    expect(problems).toEqual(['2 tools are left out: a run\'s tools of servers may have 524288 characters in all, descriptions and schemas. Let the agent\'s patterns choose fewer.']);
    expect(build([heavy(0, 400_000), heavy(1, 200_000)], { first: new Set(['s/h1']) }).tools.map(({ name }) => name)).toEqual(['s/h1']);
  });

  test('takes no place of those that are there already', () => {
    const first = new Set(['s/t9999', 's/t5000']);
    const { tools } = build(many, { first });
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining([...first, 's/t253']));
    expect(tools).toHaveLength(256);
  });

  test('is no flood of problems either', () => {
    const broken = Array.from({ length: 200 }, (_, index) => offered(`s/t${index}`, { input_schema: 5 }));
    const { problems } = build(broken);
    expect([problems.length, problems.at(-1)]).toEqual([51, 'And 150 more problems like these.']);
  });
});
