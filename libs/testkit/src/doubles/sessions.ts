/** What the run store in memory says of sessions. */
import type { RunDirectory, StoredSession } from '@treadle/engine';

export interface Session { tenant: string; current: string; last: string; queue: string[] }

export function readSession(found: Session | undefined, underWay: (session: Session) => string | null): StoredSession | null {
  if (found === undefined) return null;
  const current = underWay(found);
  return { tenant: found.tenant, current, last: (current === null && found.current) || found.last || null };
}

type ListSessions = RunDirectory['listSessions'];

export function pageOfSessions(sessions: Readonly<Record<string, Session>>, { tenant, before_id, limit }: Parameters<ListSessions>[0]): Awaited<ReturnType<ListSessions>> {
  const ids = Object.keys(sessions).filter((id) => sessions[id]!.tenant === tenant && (before_id === null || id < before_id)).sort().reverse();
  return { session_ids: ids.slice(0, limit), next_before_id: ids.length > limit ? ids[limit - 1]! : null };
}
