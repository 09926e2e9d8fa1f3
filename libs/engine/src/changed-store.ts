/**
 * A run has come to another store than it was last written by: the same one started again, or a replica in its place. It may lack the
 * run's last writes. So the claim looks into the archive before its first commit.
 *
 * 1  The archive has nothing beyond the store: the run goes on from there. What was lost beyond that, nobody has.
 * 2  The archive is ahead, and what the store holds is its beginning: the run is put to where the archived log ends, and handed on.
 * 3  The two tell different histories: the run ends as `state_lost`, and neither is changed.
 * 4  The archive does not answer: the run waits for it, without an event and without blame, as often as it takes. Going on unseen could
 *    write other events under sequence numbers that readers have.
 */
import { canonicalJson, initialState, isEnded, tellings, wellFormed, type Command, type RunEvent, type RunState } from '@treadle/core';
import { readArchived, restoredFrom, type ArchivedLog } from './archived-run.ts';
import type { RunHold } from './hold.ts';
import type { Archive } from './ports/archive.ts';
import type { Clock, Randomness } from './ports/clock.ts';
import { StoreAway, type Claimed, type InboxEntry, type TurnStore } from './ports/run-store.ts';
import type { WriteBack } from './ports/store-upkeep.ts';

export type StoreFound =
  | { readonly type: 'whole' }
  /** The store ended at `from`; the run was put to `to`, where its archived log ends. */
  | { readonly type: 'written_back'; readonly from: number; readonly to: number }
  | { readonly type: 'lost'; readonly problem: string }
  | { readonly type: 'archive_away'; readonly problem: string };

export interface LookDeps {
  readonly store: Pick<TurnStore, 'writeBack'>;
  readonly archive: Pick<Archive, 'events'>;
  readonly clock: Clock;
  readonly random: Randomness;
}

const patienceMs = 5000;
const putOffMs = 2000;

/** `whole` and `lost`: the delivery goes on. After the others it is over. Throws `StoreAway`. */
export async function lookInto(deps: LookDeps, hold: RunHold, claimed: Claimed & { readonly other_store: string }): Promise<StoreFound> {
  const ahead = await whatIsAhead(deps, hold);
  if (ahead.type === 'archive_away') {
    await putOff(deps, hold, claimed.wait_ms);
    return ahead;
  }
  if (ahead.type === 'whole' || ahead.type === 'lost') {
    hold.lookedInto(claimed.other_store);
    return ahead;
  }
  const reply = await deps.store.writeBack(writeBackOf(deps, { hold, claimed, ahead })).catch((error: unknown) => {
    hold.abort('unclear');
    throw error;
  });
  if (reply === 'fenced') hold.abort('fenced');
  else hold.handedOn();
  return { type: 'written_back', from: hold.state.last_seq, to: ahead.log.state.last_seq };
}

/** Until the store takes it, or the claim is over. */
async function putOff(deps: LookDeps, hold: RunHold, wait_ms: number): Promise<void> {
  const delay_ms = Math.max(wait_ms, Math.round(putOffMs * (1 + deps.random.jitter())));
  while (await hold.putOff(delay_ms, { past_commands: true }) === 'inbox_changed');
}

interface Ahead {
  readonly type: 'ahead';
  readonly log: ArchivedLog;
  /** Events that the store does not have. */
  readonly tail: readonly RunEvent[];
  readonly last_text: string;
}

type Look = Ahead | Exclude<StoreFound, { readonly type: 'written_back' }>;

/** Asks a few times, as long as patience lasts. */
async function whatIsAhead(deps: LookDeps, hold: RunHold): Promise<Look> {
  const untilMs = deps.clock.monotonicMs() + patienceMs;
  for (;;) {
    const look = await Promise.race([compared(deps, hold.state).catch(asAway), pause(untilMs - deps.clock.monotonicMs()).then(() => silent)]);
    if (look.type !== 'archive_away' || deps.clock.monotonicMs() + 1000 >= untilMs || hold.left !== null) return look;
    await pause(1000);
  }
}

const silent: Look = { type: 'archive_away', problem: 'no answer in time' };

function asAway(error: unknown): Look {
  if (error instanceof StoreAway) throw error;
  return { type: 'archive_away', problem: error instanceof Error ? error.message : String(error) };
}

async function compared(deps: LookDeps, state: RunState): Promise<Look> {
  const { run_id, last_seq } = state;
  if ((await deps.archive.events(run_id, last_seq, 1)).length === 0) return { type: 'whole' };
  const tail: RunEvent[] = [];
  let last_text = '';
  let there: RunState = { ...initialState, run_id };
  const log = await readArchived(deps.archive, run_id, { onEvent: (event, before, text) => {
    if (event.seq <= last_seq + 1) there = before;
    if (event.seq > last_seq) tail.push(event);
    last_text = text;
  } });
  if (typeof log === 'string') return { type: 'lost', problem: `the store ends at ${last_seq}, the archive does not; but ${log}` };
  const differs = (Object.keys(state) as (keyof RunState)[]).filter((field) => canonicalJson(there[field]) !== canonicalJson(state[field]));
  if (differs.length > 0) return { type: 'lost', problem: `at event ${last_seq} the archive tells another history than the store: ${differs.join(', ')}` };
  return { type: 'ahead', log, tail, last_text };
}

function writeBackOf({ clock }: LookDeps, { hold, claimed, ahead }: { readonly hold: RunHold; readonly claimed: Claimed & { readonly other_store: string }; readonly ahead: Ahead }): WriteBack {
  const { state, ledger, waits_until } = ahead.log;
  const ended = isEnded(state.status);
  const commands_applied = appliedIn(ahead.tail, claimed.inbox);
  const awaited = commands_applied < claimed.inbox.length;
  const delay_ms = Math.ceil((waits_until ?? 0) - clock.nowMs());
  return {
    tell: tellings(hold.state, state).map((told) => ({ ...told, command_id: `${state.run_id}-${state.last_seq}` })),
    claim: hold.claim, expected_seq: hold.state.last_seq, store_id: claimed.other_store, commands_applied,
    // What an ended run came to is put into the archive with its last event.
    run: restoredFrom(state, ledger, ended ? [ahead.last_text] : []),
    // Nobody else would wake it for the commands that are left.
    next: ended ? { type: 'end' } : awaited ? { type: 'job' } : state.status === 'paused' && waits_until === null ? { type: 'pause' } : delay_ms > 0 ? { type: 'wait', delay_ms } : { type: 'job' },
  };
}

/** Commands are applied in their order; of those whose repetition would show, the last that stands in the log tells how far. */
function appliedIn(tail: readonly RunEvent[], inbox: readonly InboxEntry[]): number {
  const said = tail.flatMap((event) => event.type === 'steer' || event.type === 'user_message' ? [event.content] : []).map(canonicalJson);
  let applied = 0;
  inbox.forEach(({ command }, index) => {
    const words = wordsOf(command);
    const at = words === undefined ? -1 : said.indexOf(canonicalJson(words));
    if (at < 0) return;
    said.splice(0, at + 1);
    applied = index + 1;
  });
  return applied;
}

function wordsOf(command: Command): unknown {
  return command.type === 'steer' ? command.text.toWellFormed() : command.type === 'resume' && command.input !== undefined ? wellFormed(command.input) : undefined;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, Math.max(0, ms)).unref(); });
}
