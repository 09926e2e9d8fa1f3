/** A configuration whose tools are functions inside the worker, each of them bad for it. Read by workers and API of the chaos tests. */
import { join } from 'node:path';
import { EventEmitter } from 'node:events';
import { defineConfig, defineTool } from '@treadle/config';
import { writeLedger } from '@treadle/testkit';

const dir = process.env.CHAOS_DIR ?? '';
const input = { type: 'object', properties: { ms: { type: 'number' } } };
const misbehave = (name: string, run: (input: Readonly<Record<string, unknown>>) => unknown) => defineTool({
  name, description: `Misbehaving tool ${name}.`, input, effect: 'once',
  run: (given, { run_id, tool_use_id, idempotency_key, epoch }) => {
    writeLedger(join(dir, 'ledger.jsonl'), { ts: Date.now(), phase: 'start', tool: name, run_id, tool_use_id, idempotency_key, epoch, input: given });
    return run(given);
  },
});

export default defineConfig({
  models: { small: { provider: 'ollama', model: 'fake', base_url: process.env.MODEL_URL ?? '', context_window: 32_768, max_output_tokens: 1024 } },
  chains: { default: { models: ['small'] } },
  mcp_servers: { t: { command: process.execPath, args: [join(import.meta.dirname, 'chaos-tools.ts')], env: { LEDGER_FILE: join(dir, 'ledger.jsonl') }, trusted: true, concurrency: 50 } },
  tools: {
    't/keyed_row': { effect: 'idempotent' },
  },
  functions: [
    misbehave('block', ({ ms }) => {
      const end = Date.now() + Number(ms);
      while (Date.now() < end);
      return 'blocked';
    }),
    misbehave('die', () => { process.kill(process.pid, 'SIGKILL'); }),
    misbehave('throw_null', () => { throw null; }),
    misbehave('throw_later', () => {
      setTimeout(() => { throw new Error('thrown when nobody listens any more'); }, 5);
      return 'fine';
    }),
    misbehave('reject_later', () => {
      void Promise.reject(new Error('rejected and nobody listens'));
      return 'fine';
    }),
    misbehave('emit_error', () => {
      const stream = new EventEmitter();
      setTimeout(() => { stream.emit('error', new Error('an error that nobody listens to')); }, 5);
      return 'fine';
    }),
  ],
  agents: { tester: { instructions: 'Test.', chain: 'default', tools: ['t/*', 'block', 'die', 'throw_null', 'throw_later', 'reject_later', 'emit_error'], limits: { max_turns: 60 } } },
});
