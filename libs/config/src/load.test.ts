import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { agentSpecOf, agentVersionOf, configWarnings } from './agent-spec.ts';
import { builtinConfig } from './builtin.ts';
import { httpTools, mcpServers, modelConnections, toolPolicies } from './connections.ts';
import { defineTool } from './define-tool.ts';
import { checkConfig, loadConfig, type LoadedConfig } from './load.ts';
import { configJsonSchema } from './schema/config.ts';

const builtin = builtinConfig({ docsFolder: '/docs', filesystemServer: { command: 'node', args: ['server.js'] } });

function minimal(): Record<string, Record<string, Record<string, unknown>>> & { $schema?: string } {
  return {
    models: { small: { provider: 'ollama', model: 'qwen3:4b' } },
    chains: { default: { models: ['small'] } },
    agents: { assistant: { instructions: 'Help.' } },
  };
}

function problemsAt(raw: unknown, env: Record<string, string> = {}): Record<string, string> {
  const outcome = checkConfig(raw, env);
  return outcome.type === 'ok' ? {} : Object.fromEntries(outcome.problems.map((each) => [each.path, each.problem]));
}

function accepted(raw: unknown, env: Record<string, string> = {}): LoadedConfig {
  const outcome = checkConfig(raw, env);
  if (outcome.type === 'invalid') throw new Error(JSON.stringify(outcome.problems));
  return outcome.config;
}

describe('checking', () => {
  test('lists all faults of a file at once, each at its path', () => {
    const raw = {
      models: { small: { provider: 'ollama', model: 'm', context_window: 'big', colour: 'red' } },
      chains: { default: { models: ['small', 'gone'] } },
      agents: { assistant: { instructions: 'Help.', chain: 'nowhere', limits: { max_turns: 0 } }, other: {} },
      extra: 1,
    };
    const problems = problemsAt(raw);
    expect(Object.keys(problems).sort()).toEqual([
      'agents.assistant.chain', 'agents.assistant.limits.max_turns', 'agents.other.instructions',
      'chains.default.models.1', 'extra', 'models.small.colour', 'models.small.context_window',
    ]);
    expect(problems.extra).toBe('unknown key');
    expect(problems['models.small.context_window']).toBe('expected number, received string');
    expect(problems['agents.other.instructions']).toBe('missing; expected string');
    expect(problems['agents.assistant.chain']).toBe('no chain is named "nowhere"; defined: default');
  });

  test('finds dangling references, also the default chain, and a model that stands in a chain twice', () => {
    const raw = { ...minimal(), chains: { spare: { models: ['small', 'small', 'lost'] } } };
    expect(problemsAt(raw)).toEqual({
      'agents.assistant.chain': 'no chain is named "default"; defined: spare',
      'chains.spare.models.1': '"small" stands in this chain already',
      'chains.spare.models.2': 'no model is named "lost"; defined: small',
    });
  });

  test('knows where each provider is when nothing else is said', () => {
    const models = { a: { provider: 'ollama', model: 'm' }, b: { provider: 'openai', model: 'm', credentials: ['k'] }, c: { provider: 'anthropic', model: 'm' }, d: { provider: 'openai', model: 'm', base_url: 'http://127.0.0.1:8000/v1' } };
    const connections = modelConnections(accepted({ ...minimal(), models, chains: { default: { models: ['a', 'b', 'c', 'd'] } } }));
    expect(Object.values(connections).map(({ base_url }) => base_url)).toEqual(['http://127.0.0.1:11434', 'https://api.openai.com/v1', 'https://api.anthropic.com', 'http://127.0.0.1:8000/v1']);
    expect(connections.b).toMatchObject({ provider: 'openai', credentials: ['k'] });
    expect(problemsAt({ ...minimal(), models: { small: { provider: 'bedrock', model: 'm' } } })).toEqual({ 'models.small.provider': 'expected ollama, openai, anthropic or scripted' });
  });

  test('has no sub-agent that is not there, or twice, or is no name', () => {
    const raw = { ...minimal(), agents: { a: { instructions: 'x', subagents: ['b', 'a', 'a', 3] }, c: { instructions: 'x', limits: { max_depth: -1, max_children: 1.5 } } } };
    expect(problemsAt(raw)).toEqual({
      'agents.a.subagents.0': 'no agent is named "b"; defined: a, c', 'agents.a.subagents.2': '"a" stands here already', 'agents.a.subagents.3': expect.any(String) as string,
      'agents.c.limits.max_depth': 'too small: expected number to be >=0', 'agents.c.limits.max_children': 'expected a whole number from 0 or {default, max}',
    });
  });

  test('needs at least one agent and one model in a chain', () => {
    expect(problemsAt({ models: {}, chains: { default: { models: [] } }, agents: {} })).toEqual({ 'chains.default.models': 'expected at least one model' });
    expect(problemsAt({ models: {}, chains: {}, agents: {} })).toEqual({ agents: 'expected at least one agent' });
    expect(problemsAt('nonsense')['']).toBe('expected object, received string');
  });

  test('refuses names that could not be labels or parts of tool names', () => {
    const raw = { ...minimal(), mcp_servers: { 'a/b': { command: 'x' } } };
    expect(problemsAt(raw)['mcp_servers.a/b']).toMatch(/not a legal name/);
  });
});

test('roots need to know which arguments name paths', () => {
  expect(Object.keys(problemsAt({ ...minimal(), tools: { 'files/write_file': { roots: ['./w'] } } }))).toEqual(['tools.files/write_file.path_args']);
  expect(accepted({ ...minimal(), tools: { 'files/write_file': { roots: ['./w'], path_args: ['path'] } } }).tools).toMatchObject({ 'files/write_file': { roots: ['./w'] } });
});

describe('keys and rates of a model', () => {
  test('are taken as they stand', () => {
    const config = accepted({ ...minimal(), models: { small: { provider: 'openai', model: 'm', credentials: ['one', 'two'], credential_strategy: 'round_robin', rates: { in_flight: 3 } } } });
    expect(modelConnections(config).small).toMatchObject({
      credentials: ['one', 'two'], credential_strategy: 'round_robin', rates: { requests_per_minute: null, tokens_per_minute: null, in_flight: 3 } });
  });

  test.each([
    [{ credentials: ['one', 'one'] }, 'models.small.credentials'], [{ credential_strategy: 'random' }, 'models.small.credential_strategy'],
    [{ rates: { in_flight: 0 } }, 'models.small.rates.in_flight'], [{ rates: { per_hour: 1 } }, 'models.small.rates.per_hour'],
  ])('%j is refused at its path', (over, path) => {
    expect(Object.keys(problemsAt({ ...minimal(), models: { small: { provider: 'openai', model: 'm', ...over } } }))).toEqual([path]);
  });
});

describe('what belongs to later releases', () => {
  test('is refused at its path, never accepted and ignored', () => {
    const raw = {
      models: {
        cloud: { provider: 'anthropic', model: 'm' }, small: { provider: 'ollama', model: 'm' },
      },
      chains: { default: { models: ['small'] } },
      tenants: { default: { max_concurrent_runs: 4, weight: 2 } },
      agents: {
        a: {
          instructions: 'x',
        },
      },
    };
    const problems = problemsAt(raw);
    expect(Object.keys(problems).sort()).toEqual([
      'tenants.default.max_concurrent_runs', 'tenants.default.weight',
    ]);
    for (const [path, problem] of Object.entries(problems)) expect(problem, path).toContain('not supported yet');
  });

  test('may stand there with the value that holds anyway', () => {
    const config = accepted({
      ...minimal(),
      models: {
        small: {
          provider: 'ollama', model: 'm', credential_strategy: 'fill_first',
          rates: { requests_per_minute: null, tokens_per_minute: null, in_flight: null },
        },
      },
      tools: { '*': { approval: 'never', on_unknown: 'report' } },
      tenants: { default: { max_concurrent_runs: null, max_queued_runs: null, requests_per_second: null, weight: 1 } },
      agents: { assistant: { instructions: 'x', subagents: [] } },
    });
    expect(Object.keys(config.agents)).toEqual(['assistant']);
  });
});

describe('tools over HTTP', () => {
  const id = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] };

  test('and the addresses they may reach are taken, with secrets in their headers', () => {
    const config = accepted({
      ...minimal(),
      http_tools: {
        lookup: { url: 'https://api.example/{id}?v=2', description: 'Looks up.', input_schema: id, headers: { authorization: 'env:TOKEN' } },
        ping: { method: 'POST', url: 'http://127.0.0.1:9/', input_schema: {}, concurrency: 7 },
      },
      mcp_servers: { web: { url: 'https://example.org/mcp', headers: { authorization: 'env:TOKEN' } } },
      egress: { allow: ['http://127.0.0.1:9', 'https://inner.example/'] },
      tools: { lookup: { timeout_ms: 5, max_total_ms: 9, concurrency: 3 }, ping: { max_total_ms: null } },
    }, { TOKEN: 'tok-secret' });
    expect(httpTools(config)).toEqual({
      lookup: { method: 'GET', url: 'https://api.example/{id}?v=2', description: 'Looks up.', input_schema: id, headers: { authorization: 'tok-secret' } },
      ping: { method: 'POST', url: 'http://127.0.0.1:9/', description: '', input_schema: { type: 'object' }, headers: {}, concurrency: 7 },
    });
    expect(mcpServers(config).web).toEqual({ url: 'https://example.org/mcp', headers: { authorization: 'tok-secret' }, trusted: false, concurrency: 8 });
    expect(toolPolicies(config)).toEqual({ lookup: { timeout_ms: 5, max_total_ms: 9, concurrency: 3 }, ping: {} });
    expect(config.secrets).toEqual(['tok-secret']);
  });

  test.each<[string, object, string, RegExp]>([
    ['a host that the model would choose', { http_tools: { x: { url: 'https://{id}/', input_schema: id } } }, 'http_tools.x.url', /never in the host/],
    ['a port that the model would choose', { http_tools: { x: { url: 'https://a.example:{id}/', input_schema: id } } }, 'http_tools.x.url', /never in the host/],
    ['a placeholder that need not be given', { http_tools: { x: { url: 'https://a.example/{name}', input_schema: id } } }, 'http_tools.x.url', /\{name\} is not among the required/],
    ['a broken placeholder', { http_tools: { x: { url: 'https://a.example/{a b}', input_schema: id } } }, 'http_tools.x.url', /between the braces/],
    ['another scheme', { http_tools: { x: { url: 'ftp://a.example/' } } }, 'http_tools.x.url', /expected an http or https URL/],
    ['a password in the address', { http_tools: { x: { url: 'https://u:p@a.example/' } } }, 'http_tools.x.url', /without user and password/],
    ['a schema that is none', { http_tools: { x: { url: 'https://a.example/', input_schema: { properties: { a: { type: 'nothing' } } } } } }, 'http_tools.x.input_schema', /JSON Schema/],
    ['a schema of something else', { http_tools: { x: { url: 'https://a.example/', input_schema: { type: 'array' } } } }, 'http_tools.x.input_schema', /its type is not "object"/],
    ['a header of the host', { http_tools: { x: { url: 'https://a.example/', headers: { 'Idempotency-Key': '1' } } } }, 'http_tools.x.headers.Idempotency-Key', /set by the host/],
    ['a header with a line break', { http_tools: { x: { url: 'https://a.example/', headers: { a: 'x\r\ny' } } } }, 'http_tools.x.headers.a', /line breaks/],
    ['no call at once', { http_tools: { x: { url: 'https://a.example/', concurrency: 0 } } }, 'http_tools.x.concurrency', />=1/],
    ['more at once than anybody means', { tools: { 's/*': { concurrency: 1001 } } }, 'tools.s/*.concurrency', /<=1000/],
    ['a part of a call', { mcp_servers: { x: { url: 'https://a.example/', concurrency: 1.5 } } }, 'mcp_servers.x.concurrency', /int/],
    ['a name of the host', { http_tools: { http_get: { url: 'https://a.example/' } } }, 'http_tools.http_get', /belongs to a tool of the host/],
    ['a secret in what the model is told', { http_tools: { x: { url: 'https://a.example/', description: 'env:S' } } }, 'http_tools.x.description', /would enter the log/],
    ['a server by both ways', { mcp_servers: { x: { url: 'https://a.example/', command: 'node' } } }, 'mcp_servers.x.url', /not both/],
    ['a server by none', { mcp_servers: { x: {} } }, 'mcp_servers.x.command', /or a url/],
    ['headers for a program', { mcp_servers: { x: { command: 'node', headers: { a: 'b' } } } }, 'mcp_servers.x.headers', /only a server with a url/],
    ['arguments for a url', { mcp_servers: { x: { url: 'https://a.example/', args: ['b'] } } }, 'mcp_servers.x.args', /only a server with a command/],
    ['more than an origin', { egress: { allow: ['http://127.0.0.1:9/path'] } }, 'egress.allow.0', /expected an origin/],
    ['a bare host', { egress: { allow: ['127.0.0.1'] } }, 'egress.allow.0', /expected an http or https URL/],
  ])('with %s are refused', (_name, over, path, problem) => {
    expect(problemsAt({ ...minimal(), ...over }, { S: 'secret-1' })[path]).toMatch(problem);
  });

  test('may not share a name with a function', () => {
    const tool = defineTool({ name: 'lookup', description: '', input: { type: 'object' }, run: () => '' });
    expect(problemsAt({ ...minimal(), functions: [tool], http_tools: { lookup: { url: 'https://a.example/' } } })).toMatchObject({ 'functions.0': 'a tool named "lookup" is defined already' });
  });
});

describe('secrets', () => {
  test('are put in where addresses and keys belong, and never reach the spec of an agent', () => {
    const raw = {
      ...minimal(),
      models: { small: { provider: 'ollama', model: 'm', base_url: 'env:BASE', credentials: ['env:KEY'] } },
      mcp_servers: { files: { command: 'node', args: ['env:ARG'], env: { TOKEN: 'env:TOKEN' } } },
    };
    const env = { BASE: 'http://10.0.0.1:1', KEY: 'sk-key', ARG: 'arg-secret', TOKEN: 'tok-secret' };
    const config = accepted(raw, env);
    expect(modelConnections(config).small).toMatchObject({ base_url: 'http://10.0.0.1:1', credentials: ['sk-key'] });
    expect(mcpServers(config).files).toMatchObject({ args: ['arg-secret'], env: { TOKEN: 'tok-secret' } });
    expect([...config.secrets].sort()).toEqual(Object.values(env).sort());
    const spec = JSON.stringify(agentSpecOf(config, 'assistant'));
    for (const secret of Object.values(env)) expect(spec).not.toContain(secret);
  });

  test('a missing variable is one problem at its path', () => {
    const raw = { ...minimal(), models: { small: { provider: 'ollama', model: 'm', base_url: 'env:NOT_THERE', credentials: ['env:EMPTY'] } } };
    expect(problemsAt(raw, { EMPTY: '' })).toEqual({
      'models.small.base_url': 'the environment variable NOT_THERE is not set',
      'models.small.credentials.0': 'the environment variable EMPTY is not set',
    });
  });

  test('are refused in what becomes part of a run', () => {
    const raw = { ...minimal(), agents: { assistant: { instructions: 'env:SECRET' } } };
    expect(problemsAt(raw, { SECRET: 's' })['agents.assistant.instructions']).toMatch(/would enter the log/);
  });
});

describe('agent specs', () => {
  const limitsOf = (limits: unknown) => agentSpecOf(accepted({ ...minimal(), agents: { assistant: { instructions: 'x', limits } } }), 'assistant')!.limits;

  test('give every limit a default and a maximum', () => {
    const limits = limitsOf({ max_turns: 7, tool_budget: { default: 5, max: 9 }, max_reasks: { max: 1 }, session_timeout_s: { max: 3600 }, turn_timeout_s: { default: 2.5 } });
    expect(limits.max_turns).toEqual({ default: 7, max: 7 });
    expect(limits.tool_budget).toEqual({ default: 5, max: 9 });
    expect(limits.max_reasks).toEqual({ default: 1, max: 1 });
    expect(limits.session_timeout_s).toEqual({ default: 600, max: 3600 });
    expect(limits.turn_timeout_s).toEqual({ default: 2.5, max: 2.5 });
    expect(limits.invalid_call_limit).toEqual({ default: 5, max: 5 });
    expect(limitsOf({ turn_timeout_s: { first: 60, default: 5 } }).turn_timeout_s).toEqual({ default: { first: 60, default: 5 }, max: 60 });
    expect(limitsOf({ turn_timeout_s: { first: 60, max: 90 } }).turn_timeout_s).toEqual({ default: { first: 60, default: 90 }, max: 90 });
  });

  test('know no limit, which is more than any', () => {
    const limits = limitsOf({ max_total_tokens: { max: 1000 }, max_cost_usd: { default: 0.5, max: null } });
    expect(limits.max_total_tokens).toEqual({ default: 1000, max: 1000 });
    expect(limits.max_cost_usd).toEqual({ default: 0.5, max: null });
    expect(limitsOf({}).max_total_tokens).toEqual({ default: null, max: null });
    expect(limitsOf({ max_total_tokens: 7, max_cost_usd: null })).toMatchObject({ max_total_tokens: { default: 7, max: 7 }, max_cost_usd: { default: null, max: null } });
  });

  test.each([
    ['max_turns', [1], [0, 1.5, null, 'two', 1e12]], ['tool_budget', [0], [-1]], ['max_retries', [0, 3], [-1, null]], ['loop_limit', [2], [1]], ['same_error_limit', [1], [0]],
    ['compact_at', [0.1, 1, { default: 0.5, max: 0.9 }], [0.05, 1.1, null]], ['turn_timeout_s', [0.5, { first: 9, default: 2 }], [0, 1e10, { first: 9, default: 2, max: 8 }, { first: 0 }]], ['session_timeout_s', [1], [{ first: 1, default: 1 }]],
    ['max_total_tokens', [1, null, { default: 5, max: 9 }], [0, 1.5, { default: null, max: 9 }]], ['max_cost_usd', [0.01, null], [0, -1, 'free']],
  ] as [string, unknown[], unknown[]][])('%s has its range', (name, good, bad) => {
    for (const value of good) expect(() => limitsOf({ [name]: value }), JSON.stringify(value)).not.toThrow();
    for (const value of bad) expect(() => limitsOf({ [name]: value }), JSON.stringify(value)).toThrow(`agents.assistant.limits.${name}`);
  });

  test('a default above the maximum, a negative and a wrong kind of limit are problems', () => {
    const raw = { ...minimal(), agents: { assistant: { instructions: 'x', limits: { max_turns: { default: 9, max: 3 }, tool_budget: -1, max_reasks: 'two', bogus: 1 } } } };
    const problems = problemsAt(raw);
    expect(Object.keys(problems).sort()).toEqual([
      'agents.assistant.limits.bogus', 'agents.assistant.limits.max_reasks', 'agents.assistant.limits.max_turns.default', 'agents.assistant.limits.tool_budget',
    ]);
    expect(problems['agents.assistant.limits.max_turns.default']).toBe('expected at most max (3)');
  });

  test('have a version that depends on what they say and not on the order of keys', () => {
    const one = agentSpecOf(accepted(minimal()), 'assistant')!;
    const turned = Object.fromEntries(Object.entries(one).reverse()) as unknown as typeof one;
    expect(agentVersionOf(one)).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(agentVersionOf(turned)).toBe(agentVersionOf(one));
    expect(agentVersionOf({ ...one, instructions: 'Other.' })).not.toBe(agentVersionOf(one));
  });

  test('name their sub-agents, each with what it says of itself', () => {
    const agents = {
      boss: { instructions: 'Lead.', tools: ['spawn_agent'], subagents: ['reader', 'writer', 'boss'], limits: { max_depth: 1, max_children: { default: 2, max: 5 } } },
      reader: { instructions: 'Read.\nSecond line.', description: 'Reads.' }, writer: { soul: 'A writer.', instructions: 'Write.' },
    };
    const config = accepted({ ...minimal(), agents });
    expect(agentSpecOf(config, 'boss')!.subagents).toEqual([{ name: 'reader', description: 'Reads.' }, { name: 'writer', description: 'A writer.' }, { name: 'boss', description: 'Lead.' }]);
    expect(agentSpecOf(config, 'boss')!.limits).toMatchObject({ max_depth: { default: 1, max: 1 }, max_children: { default: 2, max: 5 } });
    // What an agent without any is made by does not change because others may have some.
    expect(agentSpecOf(config, 'reader')).not.toHaveProperty('subagents');
    expect(configWarnings(config)).toEqual([]);
    const idle = { ...minimal(), agents: { a: { instructions: 'x', subagents: ['b'] }, b: { instructions: 'x', tools: ['spawn_agent'] } } };
    expect(configWarnings(accepted(idle))).toEqual(['agent "a" has subagents, but "spawn_agent" is not among its tools', 'agent "b" has the tool "spawn_agent", but no subagents']);
  });

  test('list the models of the chain in order, and exist only for agents that do', () => {
    const raw = { ...minimal(), models: { small: { provider: 'ollama', model: 'a' }, spare: { provider: 'scripted', model: 'b' } }, chains: { default: { models: ['spare', 'small'] } } };
    const config = accepted(raw);
    expect(agentSpecOf(config, 'assistant')!.chain.models.map((model) => model.name)).toEqual(['spare', 'small']);
    expect(agentSpecOf(config, 'nobody')).toBeUndefined();
    expect(agentSpecOf(config, 'constructor')).toBeUndefined();
  });

  test('a model without tools behind an agent that has some is a warning', () => {
    const raw = { ...minimal(), models: { small: { provider: 'ollama', model: 'a', supports_tools: false } }, agents: { assistant: { instructions: 'x', tools: ['files/*'] } } };
    expect(configWarnings(accepted(raw))).toEqual(['agent "assistant" has tools, but model "small" of its chain "default" does not support them']);
    expect(configWarnings(accepted(minimal()))).toEqual([]);
  });
});

describe('loading', () => {
  let folder: string;
  beforeEach(async () => { folder = await mkdtemp(join(tmpdir(), 'treadle-config-')); });
  afterEach(async () => { await rm(folder, { recursive: true }); });
  const load = (path?: string) => loadConfig({ path, cwd: folder, env: {}, builtin });

  test('takes the built-in configuration where there is no file', async () => {
    const outcome = await load();
    expect(outcome).toMatchObject({ type: 'ok', source: 'built-in' });
  });

  test('prefers the .ts file, whose default export counts', async () => {
    await writeFile(join(folder, 'treadle.config.json'), JSON.stringify(minimal()));
    expect(await load()).toMatchObject({ type: 'ok', source: join(folder, 'treadle.config.json') });
    const other = { ...minimal(), agents: { typed: { instructions: 'Help.' } } };
    await writeFile(join(folder, 'treadle.config.ts'), `const config: object = ${JSON.stringify(other)};\nexport default config;\n`);
    const outcome = await load();
    expect(outcome.type === 'ok' && Object.keys(outcome.config.agents)).toEqual(['typed']);
  });

  test('a file that is missing, broken or without a default export is a problem, not an exception', async () => {
    await writeFile(join(folder, 'broken.json'), '{ "models": ');
    await writeFile(join(folder, 'empty.ts'), 'export const x = 1;\n');
    await writeFile(join(folder, 'throws.ts'), 'throw new Error("no luck");\n');
    expect(await load('gone.json')).toMatchObject({ type: 'invalid', problems: [{ path: '', problem: 'the file is not there or cannot be read' }] });
    expect(await load('broken.json')).toMatchObject({ type: 'invalid', problems: [{ problem: expect.stringMatching(/^cannot be read: /) as string }] });
    expect(await load('empty.ts')).toMatchObject({ type: 'invalid', problems: [{ problem: expect.stringMatching(/default export/) as string }] });
    expect(await load('throws.ts')).toMatchObject({ type: 'invalid', problems: [{ problem: 'cannot be read: no luck' }] });
  });

  test('functions stand only in the .ts form, and only what defineTool returns', () => {
    const tool = defineTool({ name: 'add', description: 'Adds.', input: z.object({ a: z.number() }), run: ({ a }) => a });
    expect(accepted({ ...minimal(), functions: [tool] }).functions[0]).toBe(tool);
    expect(problemsAt({ ...minimal(), functions: [tool, tool, { name: 'x' }] })).toEqual({
      'functions.1': 'a tool named "add" is defined already', 'functions.2': 'expected what defineTool() returns',
    });
  });
});

describe('the built-in configuration', () => {
  test('offers only tools that read, over the documents folder', () => {
    const config = accepted(builtin);
    const spec = agentSpecOf(config, 'assistant')!;
    expect(spec.tools.every((name) => /^files\/(read|list|search|get)_/.test(name))).toBe(true);
    for (const name of spec.tools) expect(toolPolicies(config)[name]).toEqual({ effect: 'read', parallel: 'parallel' });
    expect(mcpServers(config).files).toMatchObject({ command: 'node', args: ['server.js', '/docs'] });
    expect(spec.chain.models[0]).toMatchObject({ name: 'scripted', provider: 'scripted' });
  });

  test('uses Ollama where a host or a model is given', () => {
    const config = accepted(builtinConfig({ ollamaHost: 'http://h:1', ollamaModel: 'm', docsFolder: '/d', filesystemServer: { command: 'x', args: [] } }));
    expect(agentSpecOf(config, 'assistant')!.chain.models[0]).toMatchObject({ name: 'ollama', provider: 'ollama', model: 'm' });
    expect(modelConnections(config).ollama!.base_url).toBe('http://h:1');
  });
});

test('the JSON Schema for editors accepts a good file and refuses an unknown key', () => {
  const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(configJsonSchema());
  expect(validate(minimal())).toBe(true);
  expect(validate(builtin)).toBe(true);
  expect(validate({ ...minimal(), extra: 1 })).toBe(false);
  expect(validate({ ...minimal(), tools: { x: { approval: { when: { arg: 'a', matches: 'b' } }, approval_timeout_s: 5 } } })).toBe(true);
  expect(validate({ ...minimal(), tools: { x: { approval: 'sometimes' } } })).toBe(false);
  expect(validate({ ...minimal(), functions: [] })).toBe(false);
  const lookup = { url: 'https://api.example/{id}', input_schema: { type: 'object', required: ['id'] }, headers: { a: 'env:B' } };
  expect(validate({ ...minimal(), http_tools: { lookup }, mcp_servers: { web: { url: 'https://x.example/' } }, egress: { allow: ['http://127.0.0.1:1'] } })).toBe(true);
  for (const wrong of [{ http_tools: { lookup: { ...lookup, method: 'TRACE' } } }, { http_tools: { lookup: { method: 'GET' } } }, { egress: { deny: [] } }]) expect(validate({ ...minimal(), ...wrong }), JSON.stringify(wrong)).toBe(false);
});
