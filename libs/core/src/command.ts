/**
 * What people and other runs may ask of a live run. Accepted in order through its inbox, applied by the next decision.
 */
import type { EventBody } from './events.ts';
import type { Limits } from './limits.ts';
import type { Content } from './message.ts';
import { wellFormed } from './well-formed.ts';

export type Command =
  | { readonly type: 'cancel' }
  | { readonly type: 'pause' }
  | { readonly type: 'resume'; readonly input?: Content }
  | { readonly type: 'steer'; readonly text: string }
  | { readonly type: 'update'; readonly limits?: Partial<Limits>; readonly metadata?: Readonly<Record<string, unknown>>; readonly tags?: readonly string[]; readonly by: string };

export type CommandType = Command['type'];

/** What a list of commands comes to, in their order. */
export interface Wishes {
  readonly cancel: boolean;
  /** A pause that no later resume has taken back. */
  readonly pause: boolean;
  readonly resume: boolean;
  /** Facts that hold whatever is decided beside them. */
  readonly events: readonly EventBody[];
}

export function wishesOf(commands: readonly Command[]): Wishes {
  let cancel = false;
  let pause = false;
  let resume = false;
  const events: EventBody[] = [];
  for (const command of commands) {
    switch (command.type) {
      case 'cancel': cancel = true; break;
      case 'pause': pause = true; resume = false; break;
      case 'resume':
        pause = false;
        resume = true;
        if (command.input !== undefined) events.push({ type: 'user_message', content: wellFormed(command.input) });
        break;
      case 'update': {
        const { type: _, ...change } = command;
        events.push({ type: 'run_updated', ...wellFormed(change) });
        break;
      }
      case 'steer': events.push({ type: 'steer', content: command.text.toWellFormed() }); break;
    }
  }
  return { cancel, pause, resume, events };
}
