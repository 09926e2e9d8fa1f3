/** Of the run store in memory: what is to be told of ended runs (W1 to W5). */
import type { DeliveryDirectory, DeliveryUpkeep, NewDelivery, Settlement, StoredDelivery, TakenDelivery } from '@treadle/engine';

const hourMs = 3_600_000;
const keepMs = { delivered: 24 * hourMs, dead: 7 * 24 * hourMs } as const;
const mostEnded = 1000;

export interface Delivery extends NewDelivery {
  readonly created_ms: number;
  state: StoredDelivery['state']; attempts: number; tries: number; taken: number; settled: number; due_ms: number; ended_ms: number; request: string;
  last_ms: number | null; last_status: number | null; last_error: string | null;
}

export interface OutboxParts {
  readonly step: <T>(act: () => T) => Promise<T>;
  readonly deliveries: () => Record<string, Delivery>;
  readonly now: () => number;
}

export interface Outbox {
  readonly port: DeliveryDirectory & DeliveryUpkeep;
  readonly write: (run_id: string, delivery: NewDelivery) => void;
  readonly drop: (run_id: string) => void;
  readonly pending: () => number;
}

export function outboxOf({ step, deliveries, now }: OutboxParts): Outbox {
  const drop = (run_id: string): void => { delete deliveries()[run_id]; };
  const all = (): [string, Delivery][] => Object.entries(deliveries());
  /** When something of a tenant, or of a lane of his, was last handed out: those that wait longer come first. */
  const served = new Map<string, number>();

  function write(run_id: string, delivery: NewDelivery): void {
    deliveries()[run_id] ??= {
      ...delivery, created_ms: now(), state: 'pending', attempts: 0, tries: 0, taken: 0, settled: 0, due_ms: now(), ended_ms: 0, request: '', last_ms: null, last_status: null, last_error: null,
    };
  }

  /** By `key`, those first that wait longest since they were served. */
  function inTurn(due: readonly [string, Delivery][], key: (delivery: Delivery) => string): [string, [string, Delivery][]][] {
    const place = ([name, waiting]: [string, [string, Delivery][]]): number => Math.max(waiting[0]![1].due_ms, served.get(name) ?? 0);
    return [...Map.groupBy(due, ([, delivery]) => key(delivery))].sort((one, other) => place(one) - place(other));
  }

  function take({ limit, per_tenant, per_lane, busy, lease_ms }: Parameters<DeliveryUpkeep['takeDeliveries']>[1]): TakenDelivery[] {
    for (const [run_id, { state, ended_ms }] of all()) if (state !== 'pending' && ended_ms + keepMs[state] <= now()) drop(run_id);
    const due = all().filter(([, { state, due_ms }]) => state === 'pending' && due_ms <= now()).sort(([, one], [, other]) => one.due_ms - other.due_ms);
    const taken: TakenDelivery[] = [];
    for (const [tenant, his] of inTurn(due, (delivery) => delivery.tenant)) {
      const under = busy[tenant] ?? {};
      let room = Math.min(limit - taken.length, per_tenant - Object.values(under).reduce((sum, number) => sum + number, 0));
      for (const [name, waiting] of inTurn(his, ({ lane }) => `${tenant} ${lane}`)) {
        const most = Math.min(room, per_lane - (under[waiting[0]![1].lane] ?? 0));
        if (most <= 0) continue;
        served.set(tenant, now()).set(name, now());
        for (const [run_id, delivery] of waiting.slice(0, most)) {
          const { lane, target, body, tries } = delivery;
          delivery.due_ms = now() + lease_ms;
          taken.push({ run_id, taken: ++delivery.taken, tries, tenant, target, lane, body });
          room--;
        }
      }
    }
    return taken;
  }

  function settle(run_id: string, taken: number, how: Settlement): 'settled' | 'stale' {
    const delivery = deliveries()[run_id];
    if (delivery?.taken !== taken) return 'stale';
    if (delivery.settled === taken) return 'settled';
    if (delivery.state !== 'pending') return 'stale';
    delivery.settled = taken;
    if (how.type !== 'later') {
      Object.assign(delivery, { attempts: delivery.attempts + 1, tries: delivery.tries + 1, last_ms: now(), last_status: how.status, last_error: how.type === 'delivered' ? null : how.error });
    }
    if (how.type === 'retry' || how.type === 'later') delivery.due_ms = now() + how.delay_ms;
    else {
      Object.assign(delivery, { state: how.type, ended_ms: now() });
      const ended = all().filter(([, each]) => each.tenant === delivery.tenant && each.state !== 'pending').sort(([, one], [, other]) => one.ended_ms - other.ended_ms);
      for (const [id] of ended.slice(0, Math.max(0, ended.length - mostEnded))) drop(id);
    }
    return 'settled';
  }

  return {
    drop,
    pending: () => all().filter(([, { state }]) => state === 'pending').length,
    write,
    port: {
      takeDeliveries: (_shard, asked) => step(() => take(asked)),
      settleDelivery: ({ run_id, taken }, how) => step(() => settle(run_id, taken, how)),
      redeliver: ({ run_id, tenant, request_id, not_after_ms }) => step(() => {
        const delivery = deliveries()[run_id];
        if (delivery?.tenant !== tenant) return 'missing' as const;
        if (delivery.request === request_id) return 'due' as const;
        if (now() > not_after_ms) return 'too_late' as const;
        if (delivery.state === 'pending' && (delivery.taken !== delivery.settled || delivery.due_ms <= now())) return 'pending' as const;
        Object.assign(delivery, { state: 'pending', tries: 0, due_ms: now(), request: request_id });
        return 'due' as const;
      }),
      restoreDelivery: (run_id, delivery) => step(() => {
        if (deliveries()[run_id] !== undefined) return 'exists' as const;
        write(run_id, delivery);
        return 'restored' as const;
      }),
      delivery: (run_id, tenant) => step(() => {
        const delivery = deliveries()[run_id];
        return delivery?.tenant === tenant ? shown(run_id, delivery) : null;
      }),
      deliveries: ({ tenant, state, before_id, limit }) => step(() => {
        const found = all().filter(([id, each]) => each.tenant === tenant && (state === null || each.state === state) && (before_id === null || id < before_id))
          .sort(([one], [other]) => (one < other ? 1 : -1)).map(([id, each]) => shown(id, each));
        const page = found.slice(0, limit);
        return { deliveries: page, next_before_id: found.length > page.length ? page.at(-1)!.run_id : null };
      }),
    },
  };
}

function shown(run_id: string, { target, state, attempts, last_ms, last_status, last_error, due_ms, created_ms }: Delivery): StoredDelivery {
  return { run_id, target, state, attempts, last_attempt_ms: last_ms, last_status, last_error, next_attempt_ms: state === 'pending' ? due_ms : null, created_ms };
}
