/**
 * What to do about what Redis and the archive say, for `doctor`: their messages name a cause, and each cause has one mend. Pure, so that every
 * row can be tested.
 */

export interface Said { readonly detail: string; readonly mend: string }

/** Of a Redis that cannot be used at all. */
export function redisSays(message: string): Said {
  if (/^(?:NOAUTH|WRONGPASS|ERR (?:invalid password|AUTH|Client sent AUTH))/i.test(message)) {
    const detail = message.startsWith('NOAUTH') ? 'wants a password, and none is given' : `refuses user or password: ${message}`;
    return { detail, mend: 'correct user and password in REDIS_URL: redis://user:password@host:port' };
  }
  if (message.startsWith('NOPERM')) return { detail: `refuses a command to this user: ${message}`, mend: 'give the user of REDIS_URL all commands on its keys (ACL SETUSER)' };
  if (/ENOTFOUND|EAI_AGAIN/.test(message)) return { detail: `does not answer: ${message}`, mend: 'correct the host in REDIS_URL: no such name is known' };
  return { detail: `does not answer: ${message}`, mend: 'start it, or correct REDIS_URL' };
}

/** Of an archive that takes no writes. `bucket`: null for a folder. */
export function archiveMend(message: string, bucket: string | null): string {
  if (bucket === null) return message.includes('ENOSPC') ? 'make room on that disk, or set ARCHIVE_DIR' : 'give this user the right to write into the folder, or set ARCHIVE_DIR';
  if (message.includes('NoSuchBucket')) return `create the bucket ${bucket}, or correct S3_BUCKET`;
  if (message.includes('RequestTimeTooSkewed')) return 'synchronise the clock of this machine: the store takes no requests from so far away';
  if (/InvalidAccessKeyId|SignatureDoesNotMatch/.test(message)) return 'correct S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY';
  if (/AccessDenied|\b403\b/.test(message)) return 'give the key the rights to put, get, list and delete under S3_PREFIX';
  if (/PermanentRedirect|AuthorizationHeaderMalformed|\b301\b/.test(message)) return 'correct S3_REGION: the bucket is in another one';
  if (message.includes('store refused')) return 'the store answers, and refuses this: correct what its message names, or S3_ENDPOINT';
  return 'start the store, or correct S3_ENDPOINT';
}

/** How far Redis is, ms; and by how much its clock is ahead of this machine's. */
export interface Pace { readonly roundTripMs: number; readonly aheadMs: number }

/** More, and turns are slow by it: each waits for Redis several times. */
const slowMs = 50;
const skewedMs = 2000;

export function paceSays({ roundTripMs, aheadMs }: Pace): Said[] {
  const said: Said[] = [];
  if (roundTripMs > slowMs) {
    said.push({ detail: `answers in ${Math.round(roundTripMs)} ms at best: every turn waits for it several times`, mend: 'find what is slow: redis-cli --latency on its machine and on this one' });
  }
  if (Math.abs(aheadMs) > skewedMs) {
    const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
    said.push({ detail: `its clock is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} this machine's; runs go by its clock, signed requests and logs by this one's`, mend: 'synchronise the clocks of both machines' });
  }
  return said;
}
