/**
 * BullMQ's own script for adding a prioritised job, taken from the installed package as text.
 *
 * It is not part of BullMQ's public interface. So it is taken only from the one version it was tried with, and only if it is
 * that very text: a new version of BullMQ means reading its script, running the pin test, and changing the numbers here.
 */
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';

const pinned = {
  version: '6.7.0',
  keys: 9,
  sha256: 'd4652d1be004a3d7bfed76efdc706f2017f8dfd0080c51ab1f05457eeb1c3c77',
};

export interface AddScript { readonly version: string; readonly keys: number; readonly content: string }

/** Throws with what differs from the version that was tried. */
export function loadAddScript(): AddScript {
  const require = createRequire(import.meta.url);
  const { version } = require('bullmq/package.json') as { version: string };
  const { addPrioritizedJob } = require('bullmq/dist/cjs/scripts/addPrioritizedJob-9.js') as { addPrioritizedJob: { content: string; keys: number } };
  return checked({ version, keys: addPrioritizedJob.keys, content: addPrioritizedJob.content });
}

/** Exported for the test that a changed package is refused. */
export function checked(script: AddScript): AddScript {
  const sha256 = createHash('sha256').update(script.content).digest('hex');
  const found = { version: script.version, keys: script.keys, sha256 };
  for (const part of ['version', 'keys', 'sha256'] as const) {
    if (found[part] === pinned[part]) continue;
    throw new Error(
      `bullmq's script for adding a job is not the one that was tried: ${part} is ${found[part]}, expected ${pinned[part]}. `
      + `Install bullmq ${pinned.version} exactly, or go through libs/queue/src/add-script.ts.`,
    );
  }
  return script;
}
