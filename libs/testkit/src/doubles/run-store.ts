/**
 * The run store in memory: the same promises (S1–S8) as Redis', in plain code that can be read against the scripts.
 *
 * Owns: every run's control record, log, state, transcript, ledger and inbox, and the jobs that exist.
 * Each method is one atomic step, as a script is. `rollBack` undoes the last writes, as a failover to a replica that lagged
 * does. `protections` switches single checks off, so that tests can show that they are needed.
 */
import { isEnded, isWord, wordKeyOf } from '@treadle/core';
import type {
  Append, AppendReply, Claim, ClaimReply, ClaimRequest, CommandReply, Commit, CommitReply, CreateReply, CreateRun, EventRange, InboxEntry, ListRuns,
  PumpReply, RestoredRun, RunSnapshot, SendCommand, StoredState, WatchReply, WatchRequest, WriteBack,
} from '@treadle/engine';
import { archivingOf } from './archiving.ts';
import type { Data, MemoryRunStore, Protections, Run } from './records.ts';
import { outboxOf } from './outbox.ts';
import { movesOf, restoredRecord, writtenBack } from './restored.ts';
import { pageOfSessions, readSession, type Session } from './sessions.ts';
import { usedOf } from './used.ts';

const inboxLimit = 1000;
const graceMs = 10_000;
const archiveEveryMs = 5000;

export type { MemoryJob, MemoryRunStore, Protections } from './records.ts';

export function createMemoryRunStore(): MemoryRunStore {
  let data: Data = { deleted: {}, sessions: {}, runs: {}, jobs: [], keys: {}, feed: 0, used: {}, outbox: {} };
  const history: string[] = [];
  let clockMs = 1_700_000_000_000;
  let store = 'store-1';
  let writes = 0;
  const protections: Protections = { claimCheck: true, claimId: true, expectedSeq: true, inboxCheck: true, parentCheck: true };

  /** Null where the claim does not hold. */
  function recount(held: Claim, by: number): Run | null {
    const record = data.runs[held.run_id];
    if (record?.epoch !== held.epoch || record.claim_id !== held.claim_id) return null;
    record.deliveries = Math.max(0, record.deliveries + by);
    return record;
  }

  /** One atomic step: remembers what was before if anything changed. */
  function step<T>(act: () => T): Promise<T> {
    const before = JSON.stringify(data);
    const result = act();
    if (JSON.stringify(data) !== before) {
      history.push(before);
      writes++;
    }
    return Promise.resolve(result);
  }

  const run = (run_id: string): Run | undefined => data.runs[run_id];

  function addJob(type: 'turn' | 'finish', run_id: string, n: number, front: number): void {
    if (!data.jobs.some((job) => job.type === type && job.run_id === run_id && job.n === n)) data.jobs.push({ type, run_id, n, front });
  }

  function nextJob(run_id: string, record: Run, front: number): void {
    record.job_n++;
    record.job_live = true;
    record.due_ms = null;
    record.held_ms = clockMs + graceMs;
    addJob('turn', run_id, record.job_n, front);
  }

  function mayWrite(record: Run, claim: Claim, expected_seq: number): boolean {
    if (protections.claimCheck && record.epoch !== claim.epoch) return false;
    if (protections.claimCheck && protections.claimId && record.claim_id !== claim.claim_id) return false;
    return !protections.expectedSeq || record.last_seq === expected_seq;
  }

  function isRepeat(record: Run, claim: Claim, commit_id: string): boolean {
    return record.last_commit?.commit_id === commit_id && record.last_commit.claim_id === claim.claim_id;
  }

  function appendEvents(record: Run, write: Pick<Commit, 'claim' | 'events' | 'last_ts' | 'commit_id'>): void {
    for (const text of write.events) record.events.push({ seq: ++record.last_seq, text });
    if (write.events.length > 0) {
      record.last_ts = write.last_ts;
      record.event_epoch = write.claim.epoch;
      record.archive_ms ??= clockMs + archiveEveryMs;
      data.feed++;
    }
    record.last_commit = { claim_id: write.claim.claim_id, commit_id: write.commit_id };
  }

  function unseen(record: Run, seen: number): InboxEntry[] {
    return record.inbox.slice(Math.max(0, seen - record.inbox_done));
  }

  function follow(run_id: string, record: Run, commit: Pick<Commit, 'next' | 'took_over'>): void {
    if (commit.next.type === 'keep') return;
    record.claim_id = '';
    record.deliveries = (commit.took_over ?? 'no') === 'no' ? 0 : Math.max(0, record.deliveries - (commit.took_over === 'counted' ? 1 : 0));
    record.nudges = 0;
    record.not_before = 0;
    switch (commit.next.type) {
      case 'job': nextJob(run_id, record, 1); return;
      case 'wait':
        record.job_n++;
        Object.assign(record, { job_live: false, due_ms: clockMs + commit.next.delay_ms, not_before: clockMs + commit.next.delay_ms, held_ms: null });
        return;
      case 'pause':
        record.job_n++;
        Object.assign(record, { job_live: false, due_ms: null, held_ms: null });
        return;
      case 'end':
        Object.assign(record, { job_live: false, due_ms: null, held_ms: clockMs + graceMs, archive_ms: clockMs });
        addJob('finish', run_id, 0, 2);
    }
  }

  function commit(write: Commit): CommitReply {
    const record = run(write.claim.run_id);
    if (record === undefined) return { type: 'fenced' };
    if (isRepeat(record, write.claim, write.commit_id)) return { type: 'committed', inbox: unseen(record, write.inbox_seen) };
    if (!mayWrite(record, write.claim, write.expected_seq)) return { type: 'fenced' };
    const waits = write.next.type === 'wait' || write.next.type === 'pause' || write.next.type === 'end';
    const begins = write.ledger.some(({ entry }) => entry.status === 'started');
    const decides = record.pending.join() !== write.pending.join();
    if ((waits || begins || decides) && protections.inboxCheck && record.inbox_in > write.inbox_seen) return { type: 'inbox_changed', inbox: unseen(record, write.inbox_seen) };

    appendEvents(record, write);
    Object.assign(record.fields, write.changes.fields);
    if (write.changes.fields['tags'] !== undefined) record.tags = JSON.parse(write.changes.fields['tags']) as string[];
    if (write.changes.replaces) record.messages = [];
    record.generation = write.changes.generation;
    record.messages.push(...write.changes.messages);
    for (const { tool_use_id, entry } of write.ledger) record.ledger[tool_use_id] = entry;
    record.open_calls = write.open_calls;
    record.pending = write.pending;
    record.status = write.status;
    if (write.store_id !== undefined) Object.assign(record, { store: write.store_id, moves: [...record.moves, { seq: write.expected_seq, at_ms: clockMs, epoch: write.claim.epoch }] });
    if (record.wanted === 'pause' && write.applies_inbox) record.wanted = null;
    if (write.applies_inbox) {
      record.inbox.splice(0, write.inbox_seen - record.inbox_done);
      record.inbox_done = write.inbox_seen;
    }
    follow(write.claim.run_id, record, write);
    for (const told of write.tell ?? []) command({ ...told, not_after_ms: Number.MAX_SAFE_INTEGER });
    return { type: 'committed', inbox: unseen(record, write.inbox_seen) };
  }

  function append(write: Append): AppendReply {
    const record = run(write.claim.run_id);
    if (record === undefined) return { type: 'fenced' };
    if (isRepeat(record, write.claim, write.commit_id)) return { type: 'committed', inbox: unseen(record, write.inbox_seen) };
    if (!mayWrite(record, write.claim, write.expected_seq)) return { type: 'fenced' };
    appendEvents(record, write);
    return { type: 'committed', inbox: unseen(record, write.inbox_seen) };
  }

  function stored(record: Run): StoredState {
    return {
      fields: { ...record.fields }, last_seq: record.last_seq, last_ts: record.last_ts, epoch: record.event_epoch,
      generation: record.generation, messages: [...record.messages],
    };
  }

  function claim(request: ClaimRequest): ClaimReply {
    const record = run(request.run_id);
    if (record === undefined) return { type: 'missing' };
    if (isEnded(record.status)) return { type: 'ended' };
    if (request.n !== record.job_n || !record.job_live) return { type: 'stale' };
    const { held } = request;
    const current = held !== null && held.epoch === record.epoch && held.claim_id === record.holder && held.last_seq === record.last_seq;
    const moved = record.store !== store;
    if (record.claim_id !== request.claim_id) {
      record.epoch = moved ? Math.max(record.epoch + 1000, clockMs) : record.epoch + 1;
      record.deliveries++;
      record.claim_id = request.claim_id;
      record.holder = request.claim_id;
      record.first_claimed = true;
    }
    return {
      type: 'claimed', epoch: record.epoch, last_seq: record.last_seq, stored: current ? null : stored(record), inbox: [...record.inbox],
      inbox_in: record.inbox_in, ledger: record.open_calls.flatMap((id) => record.ledger[id] ?? []), deliveries: record.deliveries, nudges: record.nudges,
      wait_ms: Math.max(0, record.not_before - clockMs), session_last: data.sessions[record.session]?.last || null, other_store: moved ? store : null,
    };
  }

  function command(sent: SendCommand): CommandReply {
    const record = run(sent.run_id);
    if (record === undefined) return { type: 'missing' };
    const before = sent.command.type === 'resume' && !isEnded(record.status) ? underWay(data.sessions[record.session]!) : null;
    if (before !== null && before !== sent.run_id) return { type: 'behind', run_id: before };
    if (record.commands.includes(sent.command_id)) return { type: 'accepted' };
    if (clockMs > sent.not_after_ms) return { type: 'too_late' };
    const { type } = sent.command;
    const word = isWord(sent.command) ? wordKeyOf(sent.command) : null;
    if (word !== null && record.decided.includes(word.subject)) return { type: 'already_decided' };
    if (word !== null && !record.pending.includes(word.awaited)) return { type: 'invalid_state', status: record.status };
    if (isEnded(record.status)) return { type: 'invalid_state', status: record.status };
    if (record.wanted === 'cancel') return type === 'cancel' ? { type: 'accepted' } : { type: 'invalid_state', status: record.status };
    if (type === 'resume' && record.status !== 'paused' && record.wanted !== 'pause') return { type: 'invalid_state', status: record.status };
    if (record.inbox.length >= inboxLimit && type !== 'child_ended') return { type: 'inbox_full' };
    record.inbox.push({ command_id: sent.command_id, command: sent.command });
    record.inbox_in++;
    record.commands.push(sent.command_id);
    if (type === 'cancel' || type === 'pause') record.wanted = type;
    if (type === 'resume') record.wanted = null;
    if (word !== null) record.decided.push(word.subject);
    if (!record.job_live) {
      if (record.first_claimed || type === 'cancel') nextJob(sent.run_id, record, 1);
    } else if (type === 'cancel' && !record.first_claimed) nextJob(sent.run_id, record, 0);
    return { type: 'accepted' };
  }

  function busyWith(session: Session): string | null {
    return underWay(session) ?? session.queue.at(-1) ?? null;
  }

  function underWay({ current }: Session): string | null {
    const record = run(current);
    return record === undefined || isEnded(record.status) ? null : current;
  }

  /** A session goes on to the next of its runs that has not been ended while it waited. */
  function release(run_id: string, record: Run): void {
    const session = data.sessions[record.session];
    if (session?.current !== run_id) return;
    session.last = run_id;
    let next = session.queue.shift();
    while (next !== undefined && isEnded(run(next)?.status ?? 'cancelled')) next = session.queue.shift();
    session.current = next ?? '';
    const waiting = next === undefined ? undefined : run(next);
    if (next === undefined || waiting === undefined) return;
    if (waiting.not_before > clockMs) waiting.due_ms = waiting.not_before;
    else if (!waiting.job_live) {
      Object.assign(waiting, { job_live: true, held_ms: clockMs + graceMs });
      addJob('turn', next, waiting.job_n, 1000 + waiting.priority);
    }
  }

  function mayHaveChild(parent: Claim | null): boolean {
    if (parent === null || !protections.parentCheck) return true;
    const record = run(parent.run_id);
    return record?.epoch === parent.epoch && record.claim_id === parent.claim_id && record.wanted !== 'cancel';
  }

  function create(request: CreateRun): CreateReply {
    if (run(request.run_id) !== undefined || data.deleted[request.run_id] !== undefined) return { type: 'exists' };
    if (clockMs > request.not_after_ms) return { type: 'too_late' };
    if (!mayHaveChild(request.parent ?? null)) return { type: 'fenced' };
    const { session } = request;
    const known = data.sessions[session.id];
    if (session.mode === 'join' && known?.tenant !== request.tenant) return { type: 'session_missing' };
    const behind = known === undefined ? null : busyWith(known);
    if (behind !== null && session.when_busy === 'reject') return { type: 'session_busy', run_id: behind };
    const scheduled = request.run_at_ms !== null;
    data.runs[request.run_id] = {
      session: session.id,      tenant: request.tenant, agent: request.agent, tags: request.tags, priority: request.priority,
      status: 'queued', epoch: 0, claim_id: '', event_epoch: 0, job_n: 1, job_live: !scheduled && behind === null, deliveries: 0, nudges: 0,
      last_seq: request.events.length, last_ts: request.last_ts, last_commit: null, wanted: null, first_claimed: false,
      fields: { ...request.changes.fields }, generation: request.changes.generation, messages: [...request.changes.messages],
      events: request.events.map((text, index) => ({ seq: index + 1, text })), ledger: {}, open_calls: [], pending: [], decided: [],
      inbox: [], inbox_in: 0, inbox_done: 0, commands: [], holder: '', not_before: request.run_at_ms ?? 0, archived_seq: 0, sealed: null,
      due_ms: behind === null ? request.run_at_ms : null, held_ms: scheduled || behind !== null ? null : clockMs + graceMs, archive_ms: clockMs + archiveEveryMs, expires_ms: null,
      segments: 0, merge_due: false, store, moves: [],
    };
    data.feed++;
    if (behind !== null) {
      known?.queue.push(request.run_id);
      return { type: 'created', behind };
    }
    data.sessions[session.id] = { tenant: request.tenant, queue: known?.queue ?? [], last: known?.current || known?.last || '', current: request.run_id };
    if (!scheduled) addJob('turn', request.run_id, 1, 1000 + request.priority);
    return { type: 'created', behind: null };
  }

  function restore(restored: RestoredRun): 'restored' | 'exists' {
    const { run_id, session_id, tenant } = restored;
    if (run(run_id) !== undefined) return 'exists';
    const session = data.sessions[session_id] ??= { tenant, queue: [], last: '', current: '' };
    const behind = busyWith(session) !== null;
    const record = restoredRecord(restored, { clockMs, graceMs, archiveEveryMs, behind, store });
    data.runs[run_id] = record;
    if (behind) session.queue.push(run_id);
    else Object.assign(session, { last: session.current || session.last, current: run_id });
    if (record.job_live) addJob('turn', run_id, record.job_n, record.epoch > 0 ? 1 : 1000 + record.priority);
    return 'restored';
  }

  function writeBack(back: WriteBack): 'written' | 'fenced' {
    const record = run(back.claim.run_id);
    if (record === undefined || !mayWrite(record, back.claim, back.expected_seq)) return 'fenced';
    Object.assign(record, writtenBack(record, back, clockMs));
    for (const told of back.tell) command({ ...told, not_after_ms: Number.MAX_SAFE_INTEGER });
    data.feed++;
    if (back.run.events.length > 0) record.archive_ms ??= clockMs + archiveEveryMs;
    follow(back.claim.run_id, record, back);
    return 'written';
  }

  function pump(limit: number, grace_ms: number): PumpReply {
    let woken = 0;
    let nudged = 0;
    for (const [run_id, record] of Object.entries(data.runs)) {
      if (record.due_ms !== null && record.due_ms <= clockMs && woken < limit) {
        Object.assign(record, { due_ms: null, job_live: true, held_ms: clockMs + grace_ms });
        addJob('turn', run_id, record.job_n, 1);
        woken++;
      } else if (record.held_ms !== null && record.held_ms <= clockMs && nudged < limit) {
        record.held_ms = clockMs + grace_ms;
        const type = isEnded(record.status) ? 'finish' : 'turn';
        const n = type === 'finish' ? 0 : record.job_n;
        if (data.jobs.some((job) => job.type === type && job.run_id === run_id && job.n === n)) continue;
        addJob(type, run_id, n, 1);
        if (type === 'turn') record.nudges++;
        nudged++;
      }
    }
    return { woken, nudged };
  }

  function list(query: ListRuns): { run_ids: string[]; next_before_id: string | null } {
    const ids = Object.keys(data.runs).sort().reverse()
      .filter((id) => query.before_id === null || id < query.before_id)
      .filter((id) => {
        const record = data.runs[id]!;
        return record.tenant === query.tenant && (query.status === null || record.status === query.status) && !(query.live === true && isEnded(record.status))
          && (query.agent === null || record.agent === query.agent) && (query.tag === null || record.tags.includes(query.tag)) && (query.session_id === null || record.session === query.session_id);
      });
    const page = ids.slice(0, query.limit);
    return { run_ids: page, next_before_id: ids.length > page.length ? page.at(-1)! : null };
  }

  const outbox = outboxOf({ step, deliveries: () => data.outbox, now: () => clockMs });

  return {
    protections,
    get writes() { return writes; },
    claim: (request) => step(() => claim(request)),
    commit: (write) => step(() => commit(write)),
    appendMany: (appends) => step(() => appends.map(append)),
    watch: (requests: readonly WatchRequest[]) => step(() => requests.map((request): WatchReply => {
      const record = run(request.claim.run_id);
      if (record?.epoch !== request.claim.epoch || record.claim_id !== request.claim.claim_id) return { type: 'fenced' };
      return { type: 'held', inbox: unseen(record, request.inbox_seen) };
    })),
    handBack: (held) => step(() => {
      const record = recount(held, -1);
      if (record !== null) record.claim_id = '';
    }),
    recount: (claims, by) => step(() => { for (const held of claims) recount(held, by); }),
    writeBack: (back) => step(() => writeBack(back)),
    ...usedOf({ step, data: () => data, release, write: outbox.write }), ...outbox.port,
    create: (request) => step(() => create(request)),
    command: (sent) => step(() => command(sent)),
    read: (run_id, without) => step((): RunSnapshot | null => {
      const record = run(run_id);
      return record === undefined ? null : { tenant: record.tenant, status: record.status, stored: { ...stored(record), ...(without === 'messages' ? { messages: [] } : {}) }, archived_seq: record.archived_seq };
    }),
    events: (run_id, after_seq, limit) => step((): EventRange | null => {
      const record = run(run_id);
      if (record === undefined) return null;
      const events = record.events.filter((event) => event.seq > after_seq).slice(0, limit).map((event) => event.text);
      return { events, first_seq: record.events[0]?.seq ?? 0, last_seq: record.last_seq, moves: [...record.moves] };
    }),
    ledger: (run_id) => step(() => { const record = run(run_id); return record === undefined ? null : Object.values(record.ledger); }),
    moves: (run_id) => step(() => movesOf(run(run_id), store, clockMs)),
    list: (query) => step(() => list(query)),
    createSession: ({ id, tenant, not_after_ms }) => step(() => {
      if (data.sessions[id] === undefined && clockMs > not_after_ms) return 'too_late' as const;
      data.sessions[id] ??= { tenant, current: '', last: '', queue: [] };
      return 'created' as const;
    }),
    session: (id) => step(() => readSession(data.sessions[id], underWay)),
    listSessions: (query) => step(() => pageOfSessions(data.sessions, query)),
    reserveKey: (key) => step(() => {
      const name = `${key.tenant}\u0000${key.key}`;
      const held = data.keys[name];
      if (held !== undefined) return { type: held.run_id === key.run_id ? 'reserved' as const : 'held' as const, ...held };
      if (clockMs > key.not_after_ms) return { type: 'too_late' as const };
      data.keys[name] = { run_id: key.run_id, body_hash: key.body_hash };
      return { type: 'reserved' as const, run_id: key.run_id, body_hash: key.body_hash };
    }),
    now: () => Promise.resolve(clockMs),
    restore: (restored) => step(() => restore(restored)),
    restoreSession: ({ session_id, tenant, last }) => step(() => {
      const session = data.sessions[session_id] ??= { tenant, queue: [], last: '', current: '' };
      if (session.last < last) session.last = last;
    }),
    pump: (_shard, options) => step(() => pump(options.limit, options.grace_ms)),
    ...archivingOf({ step, runs: () => data.runs, deleted: () => data.deleted, sessions: () => data.sessions, release, now: () => clockMs, archiveEveryMs, webhooksPending: outbox.pending, dropDelivery: outbox.drop }),
    jobs: () => [...data.jobs].sort((a, b) => a.front - b.front),
    removeJob: (done) => {
      data.jobs = data.jobs.filter((job) => job.type !== done.type || job.run_id !== done.run_id || job.n !== done.n);
    },
    passTime: (ms) => { clockMs += ms; },
    nowMs: () => clockMs,
    becomeAnother: () => { store = `store-${Number(store.slice(6)) + 1}`; },
    forget: () => { history.length = 0; },
    rollBack: (count) => {
      for (let left = count; left > 0 && history.length > 0; left--) data = JSON.parse(history.pop()!) as Data;
    },
  };
}
