/** Commands and reads, for the API. */
import { isWord, shardOf, wordKeyOf, type RunStatus } from '@treadle/core';
import type { CommandReply, CreateReply, CreateRun, DeliveryDirectory, EventRange, ListRuns, Move, RunDirectory, RunSnapshot, SendCommand } from '@treadle/engine';
import { asReply, inboxEntry, ledgerOf, storedOf, unknownReply } from './replies.ts';
import { mergePages, scanPerShard } from './run-list.ts';
import { createSessionDirectory, keepSessionMs } from './session-directory.ts';
import { createRunRemoval } from './run-removal.ts';
import type { StoreParts } from './store-parts.ts';
import { createUsageSums } from './usage-sums.ts';

/** Accepted command ids that are remembered per run; twice what an inbox holds. */
const commandIdsKept = 2000;

/** Absent, not null: cjson's null counts as true. */
function parentOf(keys: StoreParts['keys'], { parent }: CreateRun): object {
  return parent === null || parent === undefined ? {} : { parent: { ctl: keys.ctl(parent.run_id), epoch: parent.epoch, claim_id: parent.claim_id } };
}

/** A command as the scripts take it. */
export function commandHeader({ run_id, command_id, command, not_after_ms }: SendCommand, options: StoreParts['options']): object {
  return {
    run_id, command_id, type: command.type, word: isWord(command) ? wordKeyOf(command) : undefined,
    entry: inboxEntry(command_id, command), not_after_ms, inbox_limit: options.inboxLimit, ids_kept: commandIdsKept, grace_ms: options.graceMs,
  };
}

export function createRunDirectory(parts: StoreParts, now: () => Promise<number>): Omit<RunDirectory, keyof DeliveryDirectory> {
  const { run, keys, jobs, options } = parts;

  async function create(request: CreateRun): Promise<CreateReply> {
    const shard = shardOf(request.run_id);
    const { events, changes } = request;
    const fields = Object.entries(changes.fields).flat();
    const header = {
      run_id: request.run_id, tenant: request.tenant, agent: request.agent, tags: JSON.stringify(request.tags), priority: request.priority,
      last_ts: String(request.last_ts), generation: String(changes.generation), run_at_ms: request.run_at_ms ?? undefined,
      not_after_ms: request.not_after_ms, grace_ms: options.graceMs, archive_after_ms: options.archiveAfterMs,
      ...parentOf(keys, request),
      session: request.session.id, session_mode: request.session.mode, when_busy: request.session.when_busy, keep_session_ms: keepSessionMs, tally: keys.tally(shard),
      counts: { events: events.length, fields: fields.length, messages: changes.messages.length },
    };
    const reply = asReply(await run('create', {
      keys: [
        ...keys.run(request.run_id), keys.index(shard, request.tenant), keys.session(request.session.id), keys.sessionQueue(request.session.id),
        keys.sessions(shard, request.tenant),
        ...jobs.keys(shard),
      ],
      args: [JSON.stringify(header), keys.ctlSpelling(shard), ...events, ...fields, ...changes.messages],
    }));
    switch (reply[0]) {
      case 'created': return { type: 'created', behind: (reply[1] as string) === '' ? null : reply[1] as string };
      case 'session_busy': return { type: 'session_busy', run_id: reply[1] as string };
      case 'exists': case 'too_late': case 'session_missing': case 'fenced': return { type: reply[0] };
      default: throw unknownReply('create', reply);
    }
  }

  async function command(sent: SendCommand): Promise<CommandReply> {
    const { run_id } = sent;
    const spellings = [keys.sessionSpelling(shardOf(run_id)), keys.ctlSpelling(shardOf(run_id))];
    const reply = asReply(await run('command', { keys: [...keys.run(run_id), ...jobs.keys(shardOf(run_id))], args: [JSON.stringify(commandHeader(sent, options)), ...spellings] }));
    switch (reply[0]) {
      case 'accepted': case 'already_decided': case 'missing': case 'inbox_full': case 'too_late': return { type: reply[0] };
      case 'invalid_state': return { type: 'invalid_state', status: reply[1] as RunStatus };
      case 'behind': return { type: 'behind', run_id: reply[1] as string };
      default: throw unknownReply('command', reply);
    }
  }

  async function read(run_id: string, without?: 'messages'): Promise<RunSnapshot | null> {
    const reply = asReply(await run('read', { keys: keys.run(run_id), args: [without ?? ''] }));
    return reply[0] === 'missing' ? null : { tenant: reply[1] as string, status: reply[2] as RunStatus, archived_seq: Number(reply[3]), stored: storedOf(reply[4])! };
  }

  async function events(run_id: string, after_seq: number, limit: number): Promise<EventRange | null> {
    const reply = asReply(await run('events', { keys: keys.run(run_id), args: [after_seq, limit] }));
    return reply[0] === 'missing' ? null : { first_seq: Number(reply[1]), last_seq: Number(reply[2]), events: reply[3] as string[], moves: movesIn(reply[4] as string) };
  }

  return {
    create, command, read, events, now, moves: (run_id) => moves(parts, run_id), ...createRunRemoval(parts),
    ledger: async (run_id) => {
      const reply = asReply(await run('ledger', { keys: keys.run(run_id), args: [] }));
      return reply[0] === 'missing' ? null : ledgerOf(reply.slice(1));
    },
    list: async (query: ListRuns) => mergePages(await scanPerShard(parts, query), query.limit),
    ...createSessionDirectory(parts), ...createUsageSums(parts),
    reserveKey: async ({ tenant, key, run_id, body_hash, not_after_ms }) => {
      const args = [run_id, body_hash, not_after_ms, options.keepReservationMs];
      const reply = asReply(await run('reserve_key', { keys: [keys.reservation(tenant, key)], args }));
      switch (reply[0]) {
        case 'too_late': return { type: 'too_late' };
        case 'reserved': case 'held': return { type: reply[0], run_id: reply[1] as string, body_hash: reply[2] as string };
        default: throw unknownReply('reserve_key', reply);
      }
    },
  };
}

function movesIn(text: string): Move[] {
  return [...text.matchAll(/(\d+):(\d+):(\d+)/g)].map(([, seq, at_ms, epoch]) => ({ seq: Number(seq), at_ms: Number(at_ms), epoch: Number(epoch) }));
}

async function moves({ run, keys }: StoreParts, run_id: string): Promise<Move[]> {
  const [, kept, seq, now] = asReply(await run('moves', { keys: keys.run(run_id), args: [] }));
  return [...movesIn(kept as string), ...(seq === '' ? [] : [{ seq: Number(seq), at_ms: Number(now), epoch: Number(now) }])];
}
