/** GET /v1/runs/{id}/wait: woken by the run's events, not by looking again and again. */
import { isEnded } from '@treadle/core';
import { LogSetBack, type RunView } from '@treadle/engine';
import type { FastifyRequest } from 'fastify';
import { watchKey } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { findRun } from './find.ts';

export interface Wait { readonly tenant: string; readonly run_id: string; readonly timeoutMs: number; readonly request: FastifyRequest }

/** The run when it has ended, or as it is when the time is over, the client has gone, its key expires or is revoked, or the server closes. */
export async function waitForRun(context: ApiContext, wait: Wait): Promise<RunView> {
  const find = () => findRun({ store: context.store(), archive: context.log.archive }, wait.tenant, wait.run_id);
  const { view } = await find();
  if (isEnded(view.status) || wait.timeoutMs === 0) return view;
  await untilEnded(context, wait, view.last_seq);
  return (await find()).view;
}

/** Null when the run has ended or nobody waits any more; else the number behind which the run has gone on. */
async function followFrom({ deps }: ApiContext, run_id: string, options: { readonly after_seq: number; readonly signal: AbortSignal }): Promise<number | null> {
  try {
    const pages = deps.followers.follow(run_id, options);
    while (!(await pages.next()).done);
    return null;
  } catch (error) {
    if (error instanceof LogSetBack && error.last_seq < options.after_seq) return error.last_seq;
    throw error;
  }
}

async function untilEnded(context: ApiContext, wait: Wait, after_seq: number): Promise<void> {
  const over = new AbortController();
  const stop = (): void => over.abort();
  const timer = setTimeout(stop, wait.timeoutMs);
  const unwatch = watchKey(wait.request, context, stop);
  const { socket } = wait.request.raw;
  socket.once('close', stop);
  const left = context.streams.open(stop);
  try {
    for (let from: number | null = after_seq; from !== null;) from = await followFrom(context, wait.run_id, { after_seq: from, signal: over.signal });
  } finally {
    clearTimeout(timer);
    unwatch();
    socket.off('close', stop);
    left();
  }
}
