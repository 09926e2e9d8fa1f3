/** Of the run store in memory: what becomes of an ended run, and what all of them have used. */
import { addUsage, isEnded, noUsage, type Usage } from '@treadle/core';
import type { NewDelivery, RunDirectory, RunUse, TurnStore, UsageRow } from '@treadle/engine';
import type { Data, Run } from './records.ts';

export interface UsedParts {
  readonly step: <T>(act: () => T) => Promise<T>;
  readonly data: () => Data;
  /** Lets a session go on to the next of its runs. */
  readonly release: (run_id: string, run: Run) => void;
  /** Into the outbox. */
  readonly write: (run_id: string, delivery: NewDelivery) => void;
}

export function usedOf({ step, data, release, write }: UsedParts): Pick<TurnStore, 'finished'> & Pick<RunDirectory, 'usage'> {
  return {
    finished: (run_id, use, delivery) => step(() => {
      const record = data().runs[run_id];
      if (record === undefined || !isEnded(record.status)) return;
      if (use != null && !record.counted) {
        count(data(), use);
        record.counted = true;
      }
      if (delivery != null && !record.told) {
        write(run_id, delivery);
        record.told = true;
      }
      release(run_id, record);
      record.held_ms = null;
    }),
    usage: ({ tenant, from_day, to_day }) => step(() => Object.values(data().used).filter((row) => row.tenant === tenant && row.day >= from_day && row.day <= to_day)
      .map(({ tenant: _, ...row }): UsageRow => row)),
  };
}

function count({ used }: Data, { tenant, agent, day, models }: RunUse): void {
  const add = (model: string | null, usage: Usage): void => {
    const name = JSON.stringify([tenant, day, agent, model]);
    const row = used[name] ?? { tenant, day, agent, model, runs: 0, usage: noUsage };
    used[name] = { ...row, runs: row.runs + 1, usage: addUsage(row.usage, usage) };
  };
  add(null, noUsage);
  for (const [model, usage] of Object.entries(models)) add(model, usage);
}
