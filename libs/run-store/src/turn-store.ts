/** The writing side, for workers. Each call is one script; the scripts' headers say what they check and write. */
import { shardOf } from '@treadle/core';
import type { AppendReply, ClaimReply, ClaimRequest, Commit, CommitReply, TurnStore, WatchReply } from '@treadle/engine';
import { appendReplyOf, asReply, byShard, inboxOf, ledgerOf, storedOf, unknownReply, watchReplyOf } from './replies.ts';
import { commandHeader } from './run-directory.ts';
import type { StoreParts } from './store-parts.ts';
import { countedUse } from './usage-sums.ts';
import { writtenDelivery } from './webhook-outbox.ts';

export function createTurnStore(parts: StoreParts): Omit<TurnStore, 'writeBack'> {
  const { run, keys, jobs, options } = parts;

  async function claim(request: ClaimRequest): Promise<ClaimReply> {
    const { n, claim_id, held } = request;
    // Absent, not null: cjson's null counts as true.
    const body = JSON.stringify({ n, claim_id, held: held ?? undefined });
    const reply = asReply(await run('claim', { keys: keys.run(request.run_id), args: [body, keys.sessionSpelling(shardOf(request.run_id))] }));
    switch (reply[0]) {
      case 'missing': case 'stale': case 'ended': return { type: reply[0] };
      case 'claimed': return {
        type: 'claimed', epoch: Number(reply[1]), last_seq: Number(reply[2]), deliveries: Number(reply[3]), nudges: Number(reply[4]),
        wait_ms: Number(reply[5]), inbox_in: Number(reply[6]), inbox: inboxOf(reply[7] as unknown[]), ledger: ledgerOf(reply[8] as unknown[]),
        stored: storedOf(reply[9]), session_last: (reply[10] as string) === '' ? null : reply[10] as string,
        other_store: (reply[11] as string) === '' ? null : reply[11] as string,
      };
      default: throw unknownReply('claim', reply);
    }
  }

  async function commit(write: Commit): Promise<CommitReply> {
    const { run_id } = write.claim;
    const call = { keys: [...keys.run(run_id), ...jobs.keys(shardOf(run_id))], args: commitArgs(write, parts) };
    const reply = asReply(await run('commit', call));
    switch (reply[0]) {
      case 'fenced': return { type: 'fenced' };
      case 'committed': case 'inbox_changed': return { type: reply[0], inbox: inboxOf(reply.slice(1)) };
      default: throw unknownReply('commit', reply);
    }
  }

  return {
    claim,
    commit,
    appendMany: (appends) => perShard(appends, async (group): Promise<readonly AppendReply[]> => {
      const header = group.map(({ claim: held, expected_seq, commit_id, last_ts, inbox_seen, events }) => ({
        run_id: held.run_id, epoch: held.epoch, claim_id: held.claim_id, expected_seq, commit_id, last_ts: String(last_ts), inbox_seen,
        count: events.length, archive_after_ms: options.archiveAfterMs,
      }));
      const runKeys = group.flatMap(({ claim: { run_id } }) => [keys.ctl(run_id), keys.events(run_id), keys.inbox(run_id)]);
      const shard = shardOf(group[0]!.claim.run_id);
      const args = [JSON.stringify(header), ...group.flatMap(({ events }) => events)];
      const replies = await run('append_many', { keys: [...keys.shard(shard), ...runKeys], args });
      return (replies as unknown[]).map(appendReplyOf);
    }),
    watch: (requests) => perShard(requests, async (group): Promise<readonly WatchReply[]> => {
      const header = group.map(({ claim: held, inbox_seen }) => ({ epoch: held.epoch, claim_id: held.claim_id, inbox_seen }));
      const runKeys = group.flatMap(({ claim: { run_id } }) => [keys.ctl(run_id), keys.inbox(run_id)]);
      const replies = await run('watch', { keys: runKeys, args: [JSON.stringify(header)] });
      return (replies as unknown[]).map(watchReplyOf);
    }),
    handBack: async ({ run_id, epoch, claim_id }) => {
      await run('hand_back', { keys: keys.run(run_id), args: [JSON.stringify({ epoch, claim_id })] });
    },
    recount: async (claims, by) => {
      await Promise.all([...byShard(claims.map((held) => ({ claim: held }))).values()].map(async (group) => {
        const held = group.map(({ request }) => request.claim);
        await run('recount', { keys: held.map(({ run_id }) => keys.ctl(run_id)), args: [JSON.stringify(held.map(({ epoch, claim_id }) => ({ epoch, claim_id }))), by] });
      }));
    },
    finished: async (run_id, use, delivery) => {
      const shard = shardOf(run_id);
      const spellings = [keys.sessionSpelling(shard), keys.sessionQueueSpelling(shard), keys.ctlSpelling(shard)];
      await run('finished', { keys: [...keys.run(run_id), ...jobs.keys(shard)], args: [run_id, ...spellings, options.graceMs, use == null ? '' : countedUse(parts, run_id, use), ...writtenDelivery(parts, run_id, delivery ?? null)] });
    },
  };
}

/** Numbers that must come back as they are go as text: Lua's own are written with 17 digits. */
function commitArgs(write: Commit, { keys, options }: StoreParts): string[] {
  const { claim, changes, ledger } = write;
  const fields = Object.entries(changes.fields).flat();
  const entries = ledger.flatMap(({ tool_use_id, entry }) => [tool_use_id, JSON.stringify(entry)]);
  const header = {
    run_id: claim.run_id, epoch: claim.epoch, claim_id: claim.claim_id, expected_seq: write.expected_seq, commit_id: write.commit_id,
    status: write.status, last_ts: String(write.last_ts), generation: String(changes.generation), replaces: changes.replaces,
    tags: changes.fields['tags'], open_calls: JSON.stringify(write.open_calls), pending: JSON.stringify(write.pending), inbox_seen: write.inbox_seen, applies_inbox: write.applies_inbox,
    took_over: write.took_over ?? 'no', next: write.next, store_id: write.store_id ?? undefined, tally: keys.tally(shardOf(claim.run_id)),
    begins: ledger.some(({ entry }) => entry.status === 'started'),
    grace_ms: options.graceMs, archive_after_ms: options.archiveAfterMs, tell: (write.tell ?? []).map((told) => ({ keys: keys.commands(told.run_id), command: commandHeader({ ...told, not_after_ms: Number.MAX_SAFE_INTEGER }, options) })),
    counts: { events: write.events.length, fields: fields.length, messages: changes.messages.length, ledger: entries.length },
  };
  return [JSON.stringify(header), ...write.events, ...fields, ...changes.messages, ...entries];
}

/** One call per shard, the answers in the order of the requests. */
async function perShard<T extends { readonly claim: { readonly run_id: string } }, R>(
  requests: readonly T[], ask: (group: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  const answers: R[] = [];
  await Promise.all([...byShard(requests).values()].map(async (group) => {
    const replies = await ask(group.map(({ request }) => request));
    group.forEach(({ index }, at) => { answers[index] = replies[at]!; });
  }));
  return answers;
}
