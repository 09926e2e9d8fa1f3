import { expect, test } from 'vitest';
import { archiveMend, paceSays, redisSays } from './doctor-mends.ts';

test.each([
  ['NOAUTH HELLO must be called with the client already authenticated', /^wants a password, and none is given$/, /password in REDIS_URL/],
  ['WRONGPASS invalid username-password pair or user is disabled.', /^refuses user or password: WRONGPASS/, /password in REDIS_URL/],
  ['ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?', /^refuses user or password/, /password in REDIS_URL/],
  ['NOPERM this user has no permissions to run the \'info\' command', /^refuses a command/, /ACL SETUSER/],
  ['getaddrinfo ENOTFOUND redis', /^does not answer/, /host in REDIS_URL/],
  ['connect ECONNREFUSED 127.0.0.1:1', /^does not answer: connect ECONNREFUSED/, /^start it/],
  ['no answer for 5 s', /^does not answer: no answer/, /^start it/],
])('of Redis: %s', (message, detail, mend) => {
  expect(redisSays(message)).toEqual({ detail: expect.stringMatching(detail) as string, mend: expect.stringMatching(mend) as string });
});

test.each([
  ['archive store refused: PUT probe/x: 404 NoSuchBucket', 'logs', 'create the bucket logs, or correct S3_BUCKET'],
  ['archive store refused: PUT probe/x: 403 SignatureDoesNotMatch', 'logs', 'correct S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY'],
  ['archive store refused: PUT probe/x: 403 InvalidAccessKeyId', 'logs', 'correct S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY'],
  ['archive store refused: PUT probe/x: 403 RequestTimeTooSkewed', 'logs', 'synchronise the clock of this machine: the store takes no requests from so far away'],
  ['archive store refused: DELETE probe/x: 403 AccessDenied', 'logs', 'give the key the rights to put, get, list and delete under S3_PREFIX'],
  ['archive store refused: PUT probe/x: 301 PermanentRedirect', 'logs', 'correct S3_REGION: the bucket is in another one'],
  ['archive store unavailable: PUT probe/40301403: ECONNREFUSED', 'logs', 'start the store, or correct S3_ENDPOINT'],
  ['archive store refused: PUT probe/x: 400 InvalidRequest', 'logs', 'the store answers, and refuses this: correct what its message names, or S3_ENDPOINT'],
  ['archive store unavailable: write probe/x: ENOSPC', null, 'make room on that disk, or set ARCHIVE_DIR'],
  ['EACCES: permission denied, mkdtemp', null, 'give this user the right to write into the folder, or set ARCHIVE_DIR'],
])('of the archive: %s', (message, bucket, mend) => {
  expect(archiveMend(message, bucket)).toBe(mend);
});

test('says nothing of a Redis that is near and in time, and names what is far or off', () => {
  expect(paceSays({ roundTripMs: 3, aheadMs: -900 })).toEqual([]);
  expect(paceSays({ roundTripMs: 812.4, aheadMs: 0 }).map(({ detail }) => detail)).toEqual(['answers in 812 ms at best: every turn waits for it several times']);
  expect(paceSays({ roundTripMs: 1, aheadMs: 34_000 })[0]!.detail).toMatch(/^its clock is 34\.0 s ahead of this machine's/);
  expect(paceSays({ roundTripMs: 1, aheadMs: -34_000 })[0]!.detail).toMatch(/^its clock is 34\.0 s behind this machine's/);
});
