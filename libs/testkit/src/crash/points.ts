/**
 * The places in a run's life at which a process may die, by name. One turn, in order: each arrow of it is a durable write, and
 * each gap between two is a point. What the product writes in one script leaves no gap, and so no point of its own.
 */
export const crashPoints = {
  P1: 'the API has checked the request and written nothing',
  P2: 'the idempotency key is reserved, the run is not created',
  P3: 'run, first event and first job are written, the client is not answered',
  P4: 'the worker has the job and has not claimed the run',
  P5: 'the claim is written',
  P6: 'the model is asked, no byte has come back',
  P7: 'in the middle of the model\'s stream',
  P8: 'the reply is complete and not recorded',
  P9: 'the reply is recorded',
  P10: 'the beginning of a call is recorded, the tool is not called',
  P11: 'the tool runs, its effect has not happened',
  P12: 'the effect has happened, the answer has not come',
  P13: 'the answer has come and is not recorded',
  P14: 'a result is recorded, other calls of the reply are open',
  P15: 'all calls have answered, the turn is not committed',
  P16: 'the turn is committed, with its next job',
  P17: 'the job is handled and perhaps not completed',
  P18a: 'a range is sealed, its segment is not sent',
  P18b: 'the segment is sent, the answer has not come',
  P18c: 'the archive has answered, the watermark has not moved',
  P19a: 'the log may be trimmed and is not',
  P19b: 'the log is trimmed',
  P20a: 'the end is written, its duties are not done',
  P20b: 'the duties of the end are done, its job is not completed',
  P20c: 'the end is to be told, and is not sent',
  P20d: 'the end is told, and that is not recorded',
} as const;

export type CrashPoint = keyof typeof crashPoints;

/** Points that lie in the API. */
export const apiPoints: readonly CrashPoint[] = ['P1', 'P2', 'P3'];
