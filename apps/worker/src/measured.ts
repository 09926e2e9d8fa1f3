/** The ports of a turn with a stopwatch around each, and what is left of a turn without its model and its tools. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ModelGateway, ToolRunner, TurnStore } from '@treadle/engine';
import type { Metrics } from '@treadle/telemetry';

const seconds = (fromMs: number): number => (performance.now() - fromMs) / 1000;

/** Time of one turn during which a model or at least one tool was at work; calls side by side count once. */
class Outside {
  #running = 0;
  #sinceMs = 0;
  #totalMs = 0;

  get totalMs(): number {
    return this.#totalMs;
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running++ === 0) this.#sinceMs = performance.now();
    try {
      return await work();
    } finally {
      if (--this.#running === 0) this.#totalMs += performance.now() - this.#sinceMs;
    }
  }
}

const turns = new AsyncLocalStorage<Outside>();

function outside<T>(work: () => Promise<T>): Promise<T> {
  const turn = turns.getStore();
  return turn === undefined ? work() : turn.during(work);
}

/** Runs a turn, and says what of its time was Treadle's own. */
export async function measuredTurn<T>(metrics: Metrics, turn: () => Promise<T>): Promise<T> {
  const own = new Outside();
  const startMs = performance.now();
  try {
    return await turns.run(own, turn);
  } finally {
    metrics.turnOverhead.observe(Math.max(0, seconds(startMs) - own.totalMs / 1000));
  }
}

export function measuredModels(metrics: Metrics, gateway: ModelGateway): ModelGateway {
  return {
    unavailable: (models) => gateway.unavailable(models),
    admit: (asking) => gateway.admit(asking),
    crowdedMs: (asking) => gateway.crowdedMs(asking),
    call: (call) => outside(async () => {
      const model = call.request.model.name;
      const startMs = performance.now();
      let heard = false;
      const onText = (increment: string): void => {
        if (!heard) metrics.modelFirstToken.observe({ model }, seconds(startMs));
        heard = true;
        call.onText(increment);
      };
      let replied = false;
      try {
        const outcome = await gateway.call({ ...call, onText });
        replied = outcome.type === 'replied';
        return outcome;
      } finally {
        // Apart: refusals are quick and time-outs slow, and either would hide how long replies take.
        if (replied) metrics.modelDuration.observe({ model }, seconds(startMs));
        else metrics.modelFailure.observe(seconds(startMs));
      }
    }),
  };
}

export function measuredTools(tools: ToolRunner): ToolRunner {
  return { catalogue: (spec) => tools.catalogue(spec), changes: async (spec, pinned, known) => await tools.changes?.(spec, pinned, known) ?? null, check: (tool, input) => tools.check(tool, input), asks: (tool, input) => tools.asks(tool, input), run: (run) => outside(() => tools.run(run)) };
}

export function measuredStore<Store extends TurnStore>(metrics: Metrics, store: Store): Store {
  async function timed<T>(write: Promise<T>): Promise<T> {
    const startMs = performance.now();
    const reply = await write;
    metrics.eventAppend.observe(seconds(startMs));
    return reply;
  }
  const counted = (reply: { readonly type: string }): void => { if (reply.type === 'fenced') metrics.commitsFenced.inc(); };
  return {
    ...store,
    commit: async (commit) => {
      const reply = await timed(store.commit(commit));
      counted(reply);
      // What waits for a word of somebody is not late.
      if (reply.type === 'committed' && commit.next.type === 'wait' && commit.pending.length === 0) metrics.turnDelay.observe(commit.next.delay_ms / 1000);
      return reply;
    },
    appendMany: async (appends) => {
      const replies = await timed(store.appendMany(appends));
      for (const reply of replies) counted(reply);
      return replies;
    },
  };
}
