/**
 * What a name stands for, asked by whom it is safe to ask.
 *
 * The system's resolver waits in a thread, of which a process has two for all names, cannot be broken off, and takes as long as the servers of the name take:
 * a dozen names whose servers never answer, in a webhook or a tool's address, kept every connection of the process from being made, those to models included.
 * So it is asked for origins alone that the operator has listed; he may mean names of his machine and his network by them. Everything else is
 * a public name, and the name servers are asked for it without a thread, and not for long.
 */
import { lookup, type LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';

const tries = 2;

/** Also names of this machine and its network. */
export function resolvedBySystem(hostname: string): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    lookup(hostname, { all: true }, (error, addresses) => error === null ? resolve(addresses) : reject(error));
  });
}

/** Public names; `servers`: instead of the machine's; `timeoutMs`: for each try. An own resolver each time, so that it knows what the machine's settings are now. */
export async function resolvedByNameServers(hostname: string, { servers, timeoutMs = 2500 }: { readonly servers?: readonly string[]; readonly timeoutMs?: number } = {}): Promise<readonly LookupAddress[]> {
  if (/^(?:.*\.)?localhost\.?$/.test(hostname)) return [{ address: '127.0.0.1', family: 4 }];
  const resolver = new Resolver({ timeout: timeoutMs, tries });
  if (servers !== undefined) resolver.setServers(servers);
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const found = [v4, v6].flatMap((answer, at) => answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family: at === 0 ? 4 : 6 })) : []);
  if (found.length > 0) return found;
  const codes = [v4, v6].map((answer) => answer.status === 'rejected' ? String((answer.reason as { readonly code?: unknown }).code) : '');
  if (codes.includes('ENODATA')) return [];
  throw new Error(`the name ${hostname} was not found (${codes[0]}); names of this machine and its network are asked for origins alone that egress.allow lists`);
}
