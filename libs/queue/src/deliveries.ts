/**
 * The deliveries that are in this process' hands, and whether the queue still believes in them.
 *
 * Owns one abort controller and one lease timer per delivery. States: held → lost (aborted) or ended.
 * 1. A delivery is lost when the queue says that its lock was not renewed, when nothing was heard of a renewal for a whole
 *    lease (Redis is away: the queue cannot say so), and when its job is delivered again to this very process.
 * 2. Losing is courtesy: the handler is told, the fence in the run store decides.
 */
export interface Delivery {
  readonly signal: AbortSignal;
  end(): void;
}

export interface Deliveries {
  begin(job_id: string): Delivery;
  renewed(job_ids: readonly string[]): void;
  lost(job_ids: readonly string[], why: string): void;
}

interface Held { readonly controller: AbortController; readonly lease: NodeJS.Timeout }

export function createDeliveries(leaseMs: number): Deliveries {
  const held = new Map<string, Held>();

  function lose(job_id: string, why: string): void {
    const delivery = held.get(job_id);
    if (delivery === undefined) return;
    held.delete(job_id);
    clearTimeout(delivery.lease);
    delivery.controller.abort(new Error(why));
  }

  return {
    begin: (job_id) => {
      lose(job_id, 'the job was delivered again');
      const controller = new AbortController();
      const lease = setTimeout(() => { lose(job_id, 'the lease was not renewed in time'); }, leaseMs);
      const mine: Held = { controller, lease };
      held.set(job_id, mine);
      return {
        signal: controller.signal,
        end: () => {
          clearTimeout(lease);
          if (held.get(job_id) === mine) held.delete(job_id);
        },
      };
    },
    renewed: (job_ids) => { for (const id of job_ids) held.get(id)?.lease.refresh(); },
    lost: (job_ids, why) => { for (const id of job_ids) lose(id, why); },
  };
}
