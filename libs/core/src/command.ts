/**
 * What people and other runs may ask of a live run. Accepted in order through its inbox, applied by the next decision.
 */
import type { ApprovalWord, EventBody, OutcomeWord } from './events.ts';
import type { EndStatus, StopReason } from './stop-reason.ts';
import type { Limits } from './limits.ts';
import type { Content } from './message.ts';
import type { Usage } from './usage.ts';
import { wellFormed } from './well-formed.ts';

export type Command =
  | { readonly type: 'cancel' }
  | { readonly type: 'pause' }
  | { readonly type: 'resume'; readonly input?: Content }
  | { readonly type: 'steer'; readonly text: string }
  | { readonly type: 'update'; readonly limits?: Partial<Limits>; readonly metadata?: Readonly<Record<string, unknown>>; readonly tags?: readonly string[]; readonly by: string }
  | OutcomeCommand
  | ApprovalCommand
  | ChildEnded;

/** A word on a call in doubt, and what the model is told of it. */
export interface OutcomeCommand { readonly type: 'outcome'; readonly tool_use_id: string; readonly outcome: OutcomeWord; readonly content?: string; readonly by: string }

/** A word on a call that waits for approval. */
export interface ApprovalCommand {
  readonly type: 'approval';
  readonly tool_use_id: string;
  /** What the word is about; on a call that has another one it says nothing. */
  readonly digest: string;
  readonly decision: ApprovalWord;
  readonly by: string;
  readonly reason: string | null;
  /** What is approved instead of what the model asked for, and the digest of the call as it is then. */
  readonly changed?: { readonly input: Readonly<Record<string, unknown>>; readonly digest: string };
}

/** A run that this one has started has ended; said by that run's own last write. */
export interface ChildEnded {
  readonly type: 'child_ended';
  readonly child_run_id: string;
  readonly status: EndStatus;
  readonly stop_reason: StopReason;
  /** The answer; where there is none, what is to be said instead. */
  readonly text: string;
  readonly usage: Usage;
  readonly tool_calls: number;
}

export type CommandType = Command['type'];

/** What a list of commands comes to, in their order. */
export interface Wishes {
  readonly cancel: boolean;
  /** A pause that no later resume has taken back. */
  readonly pause: boolean;
  readonly resume: boolean;
  readonly words: readonly OutcomeCommand[];
  readonly decisions: readonly ApprovalCommand[];
  /** What was said to questions that wait for an answer, in order. */
  readonly answers: readonly Content[];
  /** Facts that hold whatever is decided beside them. */
  readonly events: readonly EventBody[];
}

/** `questions`: how many wait for an answer. What a resume says beyond them is a message of the user. */
export function wishesOf(commands: readonly Command[], questions = 0): Wishes {
  let cancel = false;
  let pause = false;
  let resume = false;
  const words: OutcomeCommand[] = [];
  const decisions: ApprovalCommand[] = [];
  const answers: Content[] = [];
  const events: EventBody[] = [];
  for (const command of commands) {
    switch (command.type) {
      case 'cancel': cancel = true; break;
      case 'pause': pause = true; resume = false; break;
      case 'resume':
        pause = false;
        resume = true;
        if (command.input === undefined) break;
        if (answers.length < questions) answers.push(command.input);
        else events.push({ type: 'user_message', content: wellFormed(command.input) });
        break;
      case 'update': {
        const { type: _, ...change } = command;
        events.push({ type: 'run_updated', ...wellFormed(change) });
        break;
      }
      case 'steer': events.push({ type: 'steer', content: command.text.toWellFormed() }); break;
      case 'outcome': words.push(command); break;
      case 'approval': decisions.push(command); break;
      // Told before anything else is decided: see `decide`.
      case 'child_ended': break;
    }
  }
  return { cancel, pause, resume, words, decisions, answers, events };
}
