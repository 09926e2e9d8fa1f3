import { spawn } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ToolDefinition } from '@treadle/core';
import { readLedger, testMcpServer, testSpec, testTool } from '@treadle/testkit';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ToolRunnerOptions } from '../options.ts';
import type { McpServerSource, ToolPolicySource } from '../sources.ts';
import { callOf } from '../test-call.ts';
import { createToolRunner, type OpenToolRunner } from '../tool-runner.ts';

let folder: string;
let ledger: string;
let open: OpenToolRunner[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'treadle-mcp-'));
  ledger = join(folder, 'ledger.jsonl');
});
afterEach(async () => {
  await Promise.all(open.map((runner) => runner.close()));
  open = [];
  await rm(folder, { recursive: true });
});

interface Setup { env?: Record<string, string>; trusted?: boolean; concurrency?: number; policies?: Record<string, ToolPolicySource>; options?: ToolRunnerOptions }

function runnerOf({ policies = {}, options = {}, ...server }: Setup = {}): OpenToolRunner {
  return runnerWith({ test: testMcpServer({ ledgerFile: ledger, ...server }) }, policies, options);
}

function runnerWith(mcpServers: Record<string, McpServerSource>, policies: Record<string, ToolPolicySource> = {}, options: ToolRunnerOptions = {}): OpenToolRunner {
  const runner = createToolRunner({ functions: [], mcpServers, policies }, options);
  open.push(runner);
  return runner;
}

function toolNamed(name: string, over: Partial<ToolDefinition> = {}): ToolDefinition {
  return testTool(`test/${name}`, { timeout_ms: 10_000, ...over });
}

/** Ids of the running processes that know our ledger; read from /proc, as an outsider would. */
async function aliveByEnv(): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(pids.map(async (pid) => ((await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')).includes(ledger) ? Number(pid) : null)));
  return found.filter((pid) => pid !== null);
}

async function watchdogsOf(pid: number): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((each) => readFile(`/proc/${each}/cmdline`, 'utf8').catch(() => '')));
  return lines.filter((line) => line.endsWith(`treadle-mcp-watchdog\0${pid}\0`)).length;
}

/** The script of a server that does not notice that its input has ended. */
async function deafServer(): Promise<string> {
  const script = join(folder, 'deaf.mjs');
  await writeFile(script, `setInterval(() => {}, 1000);\nawait import(${JSON.stringify(testMcpServer({ ledgerFile: ledger }).args[0])});\n`);
  return script;
}

describe('the tools of an MCP server', () => {
  test('are listed page by page, classed by the hints of a trusted server', async () => {
    const { tools, problems } = await runnerOf({ env: { MCP_PAGE_SIZE: '3' } }).catalogue(testSpec({ tools: ['test/*'] }));
    expect(problems).toEqual([]);
    expect(tools.map((tool) => tool.name)).toEqual([...tools.map((tool) => tool.name)].sort());
    expect(tools).toHaveLength(10);
    expect(tools.find((tool) => tool.name === 'test/add')).toMatchObject({ wire_name: 'test__add', effect: 'read', parallel: 'parallel' });
    expect(tools.find((tool) => tool.name === 'test/touch')).toMatchObject({ effect: 'once', parallel: 'serial', timeout_ms: 30_000 });
  });

  test('of a server that is not trusted are careful, unless the host says otherwise', async () => {
    const { tools } = await runnerOf({ trusted: false, policies: { 'test/emoji': { effect: 'read', timeout_ms: 5 } } }).catalogue(testSpec({ tools: ['test/add', 'test/emoji'] }));
    expect(tools).toMatchObject([{ name: 'test/add', effect: 'once', parallel: 'serial' }, { name: 'test/emoji', effect: 'read', parallel: 'serial', timeout_ms: 5 }]);
  });

  test('that are broken are left out, the others stay', async () => {
    const { tools, problems } = await runnerOf({ env: { MCP_BROKEN_TOOL: '1' } }).catalogue(testSpec());
    expect(tools).toHaveLength(10);
    expect(problems).toEqual([
      'Tool test/no_object is left out: its input schema is not of type "object".',
      expect.stringMatching(/^Tool test\/nonsense is left out: its input schema cannot be used/),
    ]);
  });

  test('of a server that cannot be started are missing, with its last words as the problem', async () => {
    const good = testMcpServer({ ledgerFile: ledger });
    const runner = runnerWith({ test: good, sick: testMcpServer({ ledgerFile: ledger, env: { MCP_START_FAILS: '1' } }), absent: { ...good, command: join(folder, 'no-such-program') } });
    const { tools, problems } = await runner.catalogue(testSpec({ tools: ['*/add', 'sick/add'] }));
    expect(tools.map((tool) => tool.name)).toEqual(['test/add']);
    expect(problems).toHaveLength(2);
    expect(problems.find((problem) => problem.includes('sick'))).toMatch(/^MCP server sick cannot be started: .*cannot find my settings/);
    expect(problems.find((problem) => problem.includes('absent'))).toMatch(/^MCP server absent cannot be started: .*ENOENT/);
    expect(await runner.probe('sick')).toMatchObject({ type: 'unusable' });
    expect(await runner.probe('test')).toEqual({ type: 'ok', tools: 10 });
    expect(await runner.probe('nobody')).toEqual({ type: 'unusable', problem: 'no MCP server is named nobody' });
  });

  test('of a server that does not answer in time are missing, and that it was late is the problem', async () => {
    const runner = runnerWith({ slow: { ...testMcpServer({ ledgerFile: ledger }), command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)'] } }, {}, { connectTimeoutMs: 500 });
    expect((await runner.catalogue(testSpec({ tools: ['slow/add'] }))).problems).toEqual(['MCP server slow cannot be started: no answer within 0.5 s']);
  });

  test('are not asked for where no pattern can choose them', async () => {
    await runnerOf().catalogue(testSpec({ tools: ['other/*', 'add'] }));
    expect(await aliveByEnv()).toEqual([]);
  });
});

describe('a call over MCP', () => {
  test('gives text, errors as errors, and tells the server whose call it is', async () => {
    const runner = runnerOf();
    const call = callOf(toolNamed('add'), { a: 1, b: 2 });
    expect(await runner.run(call)).toEqual({ content: '3', is_error: false, settled: true });
    expect(await runner.run(callOf(toolNamed('fail'), {}))).toEqual({ content: 'failed on purpose', is_error: true, settled: true });
    expect(await runner.run(callOf(toolNamed('emoji'), {}))).toMatchObject({ content: '👩‍👩‍👧‍👦 🎉 é ü 漢字 🇨🇭' });
    expect(await runner.run(callOf(toolNamed('surrogate'), {}))).toMatchObject({ content: 'half \ufffd of a character' });
    expect((await runner.run(callOf(toolNamed('big'), { bytes: 3_000_000 }))).content).toHaveLength(3_000_000);
    expect(readLedger(ledger).slice(0, 2)).toMatchObject(['start', 'end'].map((phase) => ({
      phase, tool: 'add', run_id: 'run_1', tool_use_id: call.tool_use_id, idempotency_key: call.idempotency_key, epoch: 7, input: { a: 1, b: 2 },
    })));
  });

  test('that the server refuses before running it is an error, and not in doubt', async () => {
    const result = await runnerOf().run(callOf(toolNamed('nothing_like_it'), {}));
    expect(result).toMatchObject({ is_error: true, settled: true, content: expect.stringContaining('Unknown tool') as string });
  });

  test('that times out is in doubt, and the server is told to stop', async () => {
    const result = await runnerOf().run(callOf(toolNamed('slow_write', { timeout_ms: 150 }), { ms: 60_000 }));
    expect(result).toEqual({ content: 'The tool timed out after 150 ms. Whether it had an effect is not known.', is_error: true, settled: false });
    await vi.waitFor(() => expect(readLedger(ledger).map((line) => line.phase)).toEqual(['start', 'cancelled']));
  });

  test('that the caller aborts is answered at once, also by a server that ignores it', async () => {
    const runner = runnerOf({ env: { MCP_IGNORE_CANCEL: '1' } });
    const abort = new AbortController();
    const running = runner.run(callOf(toolNamed('slow_lookup'), { ms: 1_000 }, abort.signal));
    await vi.waitFor(() => expect(readLedger(ledger)).toHaveLength(1), { timeout: 10_000 });
    abort.abort();
    expect(await running).toEqual({ content: 'The call was interrupted. Whether it had an effect is not known.', is_error: true, settled: false });
    expect(readLedger(ledger)).toHaveLength(1);
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
    expect(await runner.run(callOf(toolNamed('add'), { a: 2, b: 2 }))).toMatchObject({ content: '4' });
  });

  test('on a server that closes its output is in doubt soon, though the server lives on, and the next call finds a new server', async () => {
    const script = join(folder, 'mute.mjs');
    const mute = "process.stdin.on('data', (text) => { if (String(text).includes('\"mute\"')) process.stdout.end(); });\nsetInterval(() => {}, 1000);\n";
    await writeFile(script, `${mute}await import(${JSON.stringify(testMcpServer({ ledgerFile: ledger }).args[0])});\n`);
    const server = testMcpServer({ ledgerFile: ledger });
    const runner = runnerWith({ test: { ...server, args: [script, ...server.args.slice(1)] } });
    expect(await runner.run(callOf(toolNamed('mute', { timeout_ms: 60_000 }), {}))).toMatchObject({ settled: false, is_error: true });
    expect(await runner.run(callOf(toolNamed('add'), { a: 1, b: 2 }))).toMatchObject({ content: '3', settled: true });
  });

  test('on a server that dies is in doubt within five seconds, and the next call finds a new server', async () => {
    const runner = runnerOf();
    const pending = runner.run(callOf(toolNamed('slow_write'), { ms: 60_000 }));
    await vi.waitFor(() => expect(readLedger(ledger)).toHaveLength(1), { timeout: 10_000 });
    const before = performance.now();
    const crashed = await runner.run(callOf(toolNamed('crash'), {}));
    expect(crashed).toMatchObject({ is_error: true, settled: false, content: expect.stringContaining('did not answer') as string });
    expect(await pending).toMatchObject({ is_error: true, settled: false });
    expect(performance.now() - before).toBeLessThan(5_000);
    expect(await runner.run(callOf(toolNamed('add'), { a: 2, b: 3 }))).toEqual({ content: '5', is_error: false, settled: true });
  });

  test('on a server that keeps dying is not started while the server rests', async () => {
    const runner = runnerOf({ options: { backoffMs: 60_000 } });
    await runner.run(callOf(toolNamed('crash'), {}));
    await runner.run(callOf(toolNamed('crash'), {}));
    const refused = await runner.run(callOf(toolNamed('touch'), { name: 'x' }));
    expect(refused).toEqual({ content: 'MCP server test has ended', is_error: true, settled: true });
    expect(readLedger(ledger).map((line) => line.tool)).toEqual(['crash', 'crash']);
  });

  test('waits for a free slot of its server; one that is aborted while it waits was not started', async () => {
    const runner = runnerOf({ concurrency: 2 });
    const calls = Array.from({ length: 5 }, () => runner.run(callOf(toolNamed('slow_lookup'), { ms: 60 })));
    const abort = new AbortController();
    const waiting = runner.run(callOf(toolNamed('touch'), { name: 'x' }, abort.signal));
    abort.abort();
    expect(await waiting).toEqual({ content: 'The call was interrupted before it began.', is_error: true, settled: true, never_begun: true });
    expect((await Promise.all(calls)).every((result) => result.settled && !result.is_error)).toBe(true);
    let width = 0;
    let widest = 0;
    for (const line of readLedger(ledger)) {
      width += line.phase === 'start' ? 1 : -1;
      widest = Math.max(widest, width);
    }
    expect(widest).toBe(2);
    expect(readLedger(ledger).some((line) => line.tool === 'touch')).toBe(false);
  });

  test('asks when it has its slot whether it may still be sent; one whose run is gone meanwhile was not started', async () => {
    const runner = runnerOf({ concurrency: 1 });
    const abort = new AbortController();
    const asked: string[] = [];
    const first = runner.run({ ...callOf(toolNamed('slow_lookup'), { ms: 60 }), confirm: async () => { asked.push('first'); } });
    const late = runner.run({ ...callOf(toolNamed('touch'), { name: 'x' }, abort.signal), confirm: async () => { asked.push('late'); abort.abort('fenced'); } });
    const away = runner.run({ ...callOf(toolNamed('touch'), { name: 'y' }), confirm: () => Promise.reject(new Error('the store is away')) });
    expect(await late).toEqual({ content: 'The call was interrupted before it began.', is_error: true, settled: true, never_begun: true });
    expect(await away).toEqual({ content: 'The call was not started: the store is away', is_error: true, settled: true });
    expect((await first).is_error).toBe(false);
    expect(asked).toEqual(['first', 'late']);
    expect(readLedger(ledger).map((line) => line.tool)).toEqual(['slow_lookup', 'slow_lookup']);
  });
});

describe('server processes', () => {
  test('end when the runner is closed, with whatever they have started; later calls are not started', async () => {
    const server = testMcpServer({ ledgerFile: ledger });
    const script = join(folder, 'parent.mjs');
    // As `npx` does it: the program that is started starts the real server, passes its own pipes on, and is the only one told to end.
    await writeFile(script, `import { spawn } from 'node:child_process';\nspawn(process.execPath, [${JSON.stringify(await deafServer())}], { stdio: 'inherit' });\nsetInterval(() => {}, 1000);\n`);
    const runner = runnerWith({ test: { ...server, args: [script] } });
    expect(await runner.run(callOf(toolNamed('add'), { a: 1, b: 1 }))).toMatchObject({ content: '2' });
    expect(await aliveByEnv()).toHaveLength(2);
    await runner.close();
    await vi.waitFor(async () => expect(await aliveByEnv()).toEqual([]));
    expect(await runner.run(callOf(toolNamed('add'), { a: 1, b: 1 }))).toEqual({ content: 'MCP server test has been shut down.', is_error: true, settled: true });
  });

  test('a death is noticed although a child of the server holds its pipes', async () => {
    const script = join(folder, 'parent.mjs');
    const { args, ...server } = testMcpServer({ ledgerFile: ledger });
    // A server in a session of its own child, which survives it with the pipes open.
    await writeFile(script, `import { spawn } from 'node:child_process';\nspawn('sleep', ['3'], { stdio: 'inherit', detached: true }).unref();\nawait import(${JSON.stringify(args[0])});\n`);
    const runner = runnerWith({ test: { ...server, args: [script] } });
    const before = performance.now();
    expect(await runner.run(callOf(toolNamed('crash'), {}))).toMatchObject({ is_error: true, settled: false });
    expect(performance.now() - before).toBeLessThan(2_900);
  });

  test('end with this process, also one that does not notice that its input has ended', async () => {
    const server = testMcpServer({ ledgerFile: ledger });
    const sources = { functions: [], policies: {}, mcpServers: { test: { ...server, args: [await deafServer()] } } };
    const program = `
      const { createToolRunner } = await import(${JSON.stringify(new URL('../tool-runner.ts', import.meta.url).href)});
      const probe = await createToolRunner(${JSON.stringify(sources)}).probe('test');
      process.exit(probe.type === 'ok' ? 7 : 1);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' });
    const [code] = await once(child, 'exit') as [number];
    expect(code).toBe(7);
    await vi.waitFor(async () => expect(await aliveByEnv()).toEqual([]));
  });

  test('end soon after this process is killed, also one that does not notice that its input has ended', async () => {
    const server = testMcpServer({ ledgerFile: ledger });
    const sources = { functions: [], policies: {}, mcpServers: { test: { ...server, args: [await deafServer()] } } };
    const program = `
      const { createToolRunner } = await import(${JSON.stringify(new URL('../tool-runner.ts', import.meta.url).href)});
      await createToolRunner(${JSON.stringify(sources)}).probe('test');
      process.stdout.write('up');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    const [pid = 0, ...others] = (await aliveByEnv()).filter((each) => each !== child.pid);
    expect([pid > 0, others, await watchdogsOf(pid)]).toEqual([true, [], 1]);
    child.kill('SIGKILL');
    await vi.waitFor(async () => expect([await aliveByEnv(), await watchdogsOf(pid)]).toEqual([[], 0]), { timeout: 5_000 });
  });

  test('that have ended are watched no more', async () => {
    const runner = runnerOf();
    await runner.run(callOf(toolNamed('add'), { a: 1, b: 1 }));
    const [pid = 0] = await aliveByEnv();
    expect(await watchdogsOf(pid)).toBe(1);
    process.kill(pid, 'SIGKILL');
    await vi.waitFor(async () => expect(await watchdogsOf(pid)).toBe(0));
  });

  test('a start that is still going on when the runner is closed leaves nothing behind', async () => {
    const runner = runnerOf();
    const running = runner.run(callOf(toolNamed('add'), { a: 1, b: 1 }));
    await runner.close();
    expect(await running).toMatchObject({ is_error: true, settled: true });
    await vi.waitFor(async () => expect(await aliveByEnv()).toEqual([]));
  });
});
