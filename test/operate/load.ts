/**
 * A load of which everything is known beforehand: real processes, a scripted model, tools with a ledger of their own, and runs of which
 * each kind ends in its own way. What it must come to is written down here, outside of the product.
 */
import { reply, refusal, text, type ChatBody, type ModelScript } from '@treadle/testkit';
import { startStage, until, type Role, type Stage } from '../e2e/processes.ts';

/** What one run adds, by series. Tokens, cost and model requests that went out are in the model server's record. */
type Adds = Readonly<Record<string, number>>;

interface Kind {
  readonly agent: string;
  readonly limits?: Readonly<Record<string, number>>;
  /** Behind the kind's name. */
  readonly words?: string;
  readonly end: readonly [status: string, stop_reason: string];
  readonly turns: number;
  readonly adds: Adds;
  /** Done by somebody outside while the run is under way. */
  readonly meanwhile?: (stage: Stage, run_id: string) => Promise<void>;
}

const call = (tool: string, outcome: string): string => `treadle_tool_calls_total{tool="${tool}",outcome="${outcome}"}`;
const recovery = (site: string, action: string): string => `treadle_recoveries_total{site="${site}",action="${action}"}`;
const request = (model: string, outcome: string, type = 'none'): string => `treadle_model_requests_total{chain="default",model="${model}",outcome="${outcome}",error_type="${type}"}`;

export const kinds: Readonly<Record<string, Kind>> = {
  answer: { agent: 'tester', end: ['completed', 'answered'], turns: 1, adds: { [request('small', 'replied')]: 1 } },
  tools: {
    agent: 'tester', end: ['completed', 'answered'], turns: 2,
    adds: { [request('small', 'replied')]: 2, [call('test/add', 'ok')]: 1, [call('test/fail', 'error')]: 1, [call('other', 'error')]: 1 },
  },
  fallback: {
    agent: 'tester', end: ['completed', 'answered'], turns: 2,
    adds: {
      [request('small', 'failed', 'invalid_request')]: 1, [request('big', 'replied')]: 1, [recovery('fallback_model', 'fallback')]: 1,
      'treadle_model_fallbacks_total{chain="default",from_model="small",to_model="big",error_type="invalid_request"}': 1,
    },
  },
  again: {
    agent: 'tester', end: ['completed', 'answered'], turns: 2,
    adds: { [request('small', 'failed', 'overloaded')]: 1, [request('small', 'replied')]: 1, [recovery('none', 'backoff')]: 1 },
  },
  limit: {
    agent: 'tester', limits: { max_turns: 1 }, end: ['expired', 'max_turns'], turns: 1,
    // The second reply is the summary.
    adds: { [request('small', 'replied')]: 2, [call('test/add', 'ok')]: 1 },
  },
  checked: {
    agent: 'checked', end: ['completed', 'answered'], turns: 2,
    adds: { [request('small', 'replied')]: 2, 'treadle_validation_errors_total{validator="yes",error_type="pattern"}': 1 },
  },
  hooked: { agent: 'hooked', end: ['completed', 'answered'], turns: 2, adds: { [request('small', 'replied')]: 2, [recovery('stop_hook', 'extra_turn')]: 1 } },
  doubt: {
    agent: 'tester', end: ['completed', 'answered'], turns: 2,
    adds: { [request('small', 'replied')]: 2, [call('test/slow_write', 'ok')]: 1 },
    meanwhile: async (stage, run_id) => {
      const pending = await until('the run asks a person', async () => ((await stage.client.run(run_id))['pending'] as { tool_use_id: string }[])[0]);
      await stage.client.resolve(run_id, pending.tool_use_id, { outcome: 'happened' });
    },
  },
  unsaid: {
    agent: 'tester', end: ['completed', 'answered'], turns: 2,
    adds: { [request('small', 'replied')]: 2, [call('test/slow_write', 'unknown')]: 1 },
    meanwhile: async (stage, run_id) => {
      await until('the run asks a person', async () => (await stage.client.run(run_id)).status === 'paused');
      await stage.client.resume(run_id);
    },
  },
  cut: {
    agent: 'tester', words: 'word '.repeat(4000), end: ['failed', 'context_exhausted'], turns: 2,
    adds: { [request('small', 'failed', 'context_overflow')]: 1, [recovery('prompt_too_long', 'reactive_compact')]: 1, 'treadle_context_truncated_total{model="small"}': 1 },
  },
  cancelled: {
    agent: 'tester', end: ['cancelled', 'interrupted'], turns: 1, adds: { [request('small', 'aborted', 'aborted')]: 1 },
    meanwhile: async (stage, run_id) => {
      const events = stage.client.events(run_id);
      for await (const event of events) if (event.type === 'model_request') break;
      await stage.client.cancel(run_id);
    },
  },
};

/** The first words of the user name the kind. */
function kindOf(body: ChatBody | null): string {
  const first = (body?.messages ?? []).find((message) => message.role === 'user');
  return typeof first?.content === 'string' ? first.content : '';
}

/** What the model server has answered whole, by the model's name in the configuration. `wasted`: the reply cannot be used. */
export interface Spent { readonly model: string; readonly prompt: number; readonly output: number; readonly wasted: boolean }

const outputTokens = 7;

function scriptOf(spent: Spent[]): ModelScript {
  const refused = new Set<string>();
  return (body) => {
    const kind = kindOf(body).split(' ')[0] ?? '';
    if (body.model === 'fake-shaky') return refusal(503, 'overloaded');
    if (body.model === 'fake-cached') return reply({ usage: { prompt: 500, output: outputTokens, cached: 300 }, text: 'yes' });
    const model = body.model === 'fake-big' ? 'big' : 'small';
    const results = (body.messages ?? []).filter((message) => message.role === 'tool').length;
    const words = (body.messages ?? []).filter((message) => message.role === 'assistant').length;
    if (kind === 'fallback' && model === 'small') return refusal(400, 'the request is wrong');
    // Every other request of such a run: the same words may come again.
    if (kind === 'again' && !refused.delete(kindOf(body))) {
      refused.add(kindOf(body));
      return refusal(503, 'overloaded');
    }
    if (kind === 'cancelled') return text('never heard', { delayMs: 30_000 });
    // What is cut counts far fewer tokens than were sent.
    const wasted = kind === 'cut' && model === 'small';
    const usage = { prompt: wasted ? 10 : Math.ceil(JSON.stringify(body).length / 4), output: outputTokens };
    spent.push({ model, prompt: usage.prompt, output: usage.output, wasted });
    const calls = (...named: (readonly [string, object])[]) => reply({ usage, calls: named.map(([name, args]) => ({ id: null, name, args })) });
    if (kind === 'tools' && results === 0) return calls(['test__add', { a: 1, b: 2 }], ['test__fail', {}], [`invented_${spent.length}`, {}]);
    if (kind === 'limit' && results === 0) return calls(['test__add', { a: 1, b: 2 }]);
    if ((kind === 'doubt' || kind === 'unsaid') && results === 0) return calls(['test__slow_write', { ms: 20_000 }]);
    if (kind === 'taken' && results === 0) return calls(['test__add', { a: 1, b: 2 }], ['test__slow_lookup', { ms: 2000 }]);
    return reply({ usage, text: words === 0 ? 'not yet' : 'yes' });
  };
}

export const prices = { input_per_mtok: 2, output_per_mtok: 8 } as const;

export interface Load {
  readonly stage: Stage;
  readonly workers: readonly Role[];
  readonly spent: readonly Spent[];
  /** Runs of each kind, at the same time; resolves when all have ended as they must. */
  play(each: number): Promise<void>;
  /** A worker stands still with a turn in hand, and another takes it over. */
  takeOver(): Promise<void>;
  /** Runs over the chain whose first model is overloaded: its breaker opens. */
  shake(): Promise<void>;
  /** A run whose provider had most of its prompt in a cache. */
  repeat(): Promise<void>;
  stop(): Promise<void>;
}

export interface LoadOptions {
  readonly workers: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Other chains: one with a model on trial, one whose first model is overloaded, one whose provider caches. */
  readonly chains?: boolean;
}

export async function startLoad(options: LoadOptions): Promise<Load> {
  const spent: Spent[] = [];
  const agent = { instructions: 'Test.', chain: 'default', tools: ['test/*'] };
  const stage = await startStage({
    model: { dialect: ['ollama', 'openai'], script: scriptOf(spent), strict: false },
    tools: { 'test/slow_write': { timeout_ms: 300, on_unknown: 'ask' } },
    env: { WORKER_CONCURRENCY: '20', TREADLE_RETENTION_H: '1', ...options.env },
    config: (url) => {
      const model = (name: string) => ({ provider: 'ollama', model: `fake-${name}`, base_url: url, context_window: 32_768, max_output_tokens: 1024, price: prices });
      return {
        models: { small: model('small'), big: model('big'), shaky: model('shaky'), ...(options.chains === true ? { cached: { provider: 'openai', model: 'fake-cached', base_url: `${url}/v1` } } : {}) }, chains: {
          default: { models: ['small', 'big'] },
          ...(options.chains === true ? { tried: { models: ['small'], canary: { model: 'big', stages: [0, 50, 100], min_runs: 50, bounds: { error_rate_delta: 0.02, latency_ratio: 1.5, cost_ratio: 2 } } }, shaky: { models: ['shaky', 'big'] }, cached: { models: ['cached'] } } : {}),
        },
        agents: {
          tester: agent, checked: { ...agent, validators: [{ name: 'yes', type: 'regex', pattern: '^yes$', mode: 'enforce', feedback: 'Say yes.' }] },
          shaken: { ...agent, chain: options.chains === true ? 'shaky' : 'default' },
          repeated: { ...agent, chain: options.chains === true ? 'cached' : 'default' },
          hooked: { ...agent, stop_hooks: [{ name: 'again', type: 'regex', pattern: '^not yet$', decision: 'extra_turn', prompt: 'Now?' }] },
        },
      };
    },
  });
  const workers = await Promise.all(Array.from({ length: options.workers }, () => stage.startWorker()));
  return {
    stage, workers, spent, stop: () => stage.stop(), takeOver: () => takeOver(stage, workers), shake: () => shake(stage), repeat: () => completed(stage, 'repeated', 'answer again'),
    play: async (each) => {
      await Promise.all(Object.entries(kinds).flatMap(([name, kind]) => Array.from({ length: each }, async (_, index) => {
        const { id } = await stage.client.createRun({ agent: kind.agent, input: `${name} ${index} ${kind.words ?? ''}`, ...(kind.limits === undefined ? {} : { limits: kind.limits }) });
        await kind.meanwhile?.(stage, id);
        const run = await stage.client.wait(id, 60_000);
        if (`${run.status} ${run.stop_reason ?? ''}` !== kind.end.join(' ')) throw new Error(`${name} ${id} ended as ${run.status} ${run.stop_reason ?? ''}`);
      })));
    },
  };
}

/** Every sample of these processes, added up. */
export async function scrape(roles: readonly Role[]): Promise<Map<string, number>> {
  const sums = new Map<string, number>();
  for (const role of roles) {
    const page = await (await fetch(`${role.url}/metrics`)).text();
    for (const line of page.split('\n')) {
      const [, series, value] = /^([a-z_]+(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
      if (series !== undefined) sums.set(series, (sums.get(series) ?? 0) + Number(value));
    }
  }
  return sums;
}

/** The worker that has the run stands still until the other has taken it over, and then finds that it may write no more. */
async function takeOver(stage: Stage, workers: readonly Role[]): Promise<void> {
  const { id } = await stage.client.createRun({ agent: 'tester', input: 'taken over' });
  let name = '';
  for await (const event of stage.client.events(id)) {
    if (event.type === 'turn_start') name = String(event['worker']);
    if (event.type === 'tool_result') break;
  }
  const holder = workers.find((worker) => name.endsWith(`-${worker.pid}`));
  if (holder === undefined) throw new Error(`no worker is named ${name}`);
  holder.kill('SIGSTOP');
  try {
    const run = await stage.client.wait(id, 60_000);
    if (run.status !== 'completed') throw new Error(`${id} ended as ${run.status}`);
  } finally {
    holder.kill('SIGCONT');
  }
}

async function shake(stage: Stage): Promise<void> {
  await Promise.all([1, 2, 3, 4].map((index) => completed(stage, 'shaken', `answer ${index}`)));
}

async function completed(stage: Stage, agent: string, input: string): Promise<void> {
  const { id } = await stage.client.createRun({ agent, input });
  const run = await stage.client.wait(id, 60_000);
  if (run.status !== 'completed') throw new Error(`${id} ended as ${run.status}`);
}
