/**
 * Ports that die at a named point. They stand between a worker (or an API) and what it works with, in tests alone: the product
 * itself knows nothing of points.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { decodeEvent } from '@treadle/core';
import type { Archive, Commit, ModelGateway, RunStore, ToolRunner } from '@treadle/engine';
import { readLedger, type LedgerPhase } from '../tools/ledger.ts';
import type { Armed } from './armed.ts';

export interface CrashingPorts<Models extends ModelGateway = ModelGateway, Tools extends ToolRunner = ToolRunner> {
  readonly store: RunStore; readonly archive: Archive; readonly models: Models; readonly tools: Tools;
}

/** `ledgerFile`: where the tools record what they do; it tells when an effect has happened. */
export function crashingPorts<Models extends ModelGateway, Tools extends ToolRunner>(ports: CrashingPorts<Models, Tools>, armed: Armed, ledgerFile: string): CrashingPorts<Models, Tools> {
  return { store: workersStore(ports.store, armed), archive: archive(ports.archive, armed), models: models(ports.models, armed), tools: tools(ports.tools, armed, ledgerFile) };
}

function workersStore(store: RunStore, armed: Armed): RunStore {
  return {
    ...store,
    claim: async (request) => {
      armed.at('P4', request.run_id);
      const reply = await store.claim(request);
      if (reply.type === 'claimed') armed.at('P5', request.run_id);
      return reply;
    },
    commit: async (commit) => {
      const { run_id } = commit.claim;
      const about = aboutOf(commit);
      if (about.settles && about.hands_over) armed.at('P15', run_id);
      const reply = await store.commit(commit);
      if (reply.type !== 'committed') return reply;
      if (about.reply) armed.at('P9', run_id);
      if (about.begins) armed.at('P10', run_id);
      if (about.settles && commit.open_calls.length > 0) armed.at('P14', run_id);
      if (about.hands_over) {
        armed.at('P16', run_id);
        setImmediate(() => { armed.at('P17', run_id); });
      }
      return reply;
    },
    finished: async (run_id, use, delivery) => {
      armed.at('P20a', run_id);
      await store.finished(run_id, use, delivery);
      armed.at('P20b', run_id);
    },
    takeDeliveries: async (shard, take) => {
      const taken = await store.takeDeliveries(shard, take);
      for (const { run_id } of taken) armed.at('P20c', run_id);
      return taken;
    },
    settleDelivery: async (taken, how) => {
      armed.at('P20d', taken.run_id);
      return store.settleDelivery(taken, how);
    },
    archived: async (range, options) => {
      armed.at('P19a', range.run_id);
      const reply = await store.archived(range, options);
      armed.at('P19b', range.run_id);
      return reply;
    },
  };
}

/** What a commit is, told by what it writes. */
function aboutOf(commit: Commit): { readonly reply: boolean; readonly begins: boolean; readonly settles: boolean; readonly hands_over: boolean } {
  const events = commit.events.map((line) => decodeEvent(line));
  return {
    reply: events.some((event) => event.type === 'tool_use' || (event.type === 'assistant_text' && event.is_final)) && commit.next.type === 'keep',
    begins: commit.ledger.some(({ entry }) => entry.status === 'started'),
    settles: events.some((event) => event.type === 'tool_result'),
    hands_over: commit.next.type === 'job',
  };
}

function archive(real: Archive, armed: Armed): Archive {
  return {
    ...real,
    putSegment: async (segment) => {
      armed.at('P18a', segment.run_id);
      const put = real.putSegment(segment);
      if (armed.pending(segment.run_id) === 'P18b') {
        await pause(3);
        armed.at('P18b', segment.run_id);
      }
      await put;
      armed.at('P18c', segment.run_id);
    },
  };
}

function models<Models extends ModelGateway>(real: Models, armed: Armed): Models {
  return {
    ...real,
    call: async (call) => {
      const run_id = runOf(call.request.messages);
      const asked = real.call({ ...call, onText: (increment) => { armed.at('P7', run_id); call.onText(increment); } });
      if (armed.pending(run_id) === 'P6') {
        await pause(10);
        armed.at('P6', run_id);
      }
      const outcome = await asked;
      if (outcome.type === 'replied') armed.at('P8', run_id);
      return outcome;
    },
  };
}

/** A request does not carry its run's id: runs that are armed say it in their input, as `[[…]]`. */
function runOf(messages: readonly { readonly role: string; readonly content?: unknown }[]): string {
  for (const { role, content } of messages) {
    const found = role === 'user' && typeof content === 'string' ? /\[\[([\w.-]+)\]\]/.exec(content)?.[1] : undefined;
    if (found !== undefined) return found;
  }
  return '';
}

function tools<Tools extends ToolRunner>(real: Tools, armed: Armed, ledgerFile: string): Tools {
  return {
    ...real,
    run: async (run) => {
      const running = real.run(run);
      const pending = armed.pending(run.run_id);
      if (pending === 'P11' || pending === 'P12') {
        await recorded(ledgerFile, run.tool_use_id, run.run_id, pending === 'P11' ? 'start' : 'end');
        armed.at(pending, run.run_id);
      }
      const result = await running;
      armed.at('P13', run.run_id);
      return result;
    },
  };
}

/** Resolves when the tool's own record has the line, or after a second. */
async function recorded(file: string, tool_use_id: string, run_id: string, phase: LedgerPhase): Promise<void> {
  const end = performance.now() + 1000;
  while (performance.now() < end && !readLedger(file).some((line) => line.run_id === run_id && line.tool_use_id === tool_use_id && line.phase === phase)) await pause(2);
}

/** The API's store: the idempotency key is the subject, since there is no run yet. */
export function crashingDirectory(store: RunStore, armed: Armed): RunStore {
  const keyOf = new Map<string, string>();
  return {
    ...store,
    reserveKey: async (key) => {
      armed.at('P1', key.key);
      const reply = await store.reserveKey(key);
      if (reply.type !== 'too_late') keyOf.set(reply.run_id, key.key);
      armed.at('P2', key.key);
      return reply;
    },
    create: async (run) => {
      const reply = await store.create(run);
      armed.at('P3', keyOf.get(run.run_id) ?? '');
      return reply;
    },
  };
}
