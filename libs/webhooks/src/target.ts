/** What a request may name as the receiver: refused here, where it can be known, rather than at each attempt for a day. */
import type { WebhookTarget } from '@treadle/core';

export interface TargetRules {
  /** Endpoints of the configuration: name and address. */
  readonly endpoints: Readonly<Record<string, { readonly url: string }>>;
  /** Whether there is a secret for addresses that no endpoint has. */
  readonly signsOthers: boolean;
  /** Origins inside that may be reached. */
  readonly allow: readonly string[];
  /** Null for a public address, else what it is. Asked about literal addresses alone. */
  readonly insideOf: (address: string) => string | null;
}

const mostCharacters = 2048;

/** In words for people; null where it can be told there. */
export function targetProblem(target: WebhookTarget, rules: TargetRules): { readonly field: 'url' | 'endpoint'; readonly problem: string } | null {
  if ('endpoint' in target) {
    if (Object.hasOwn(rules.endpoints, target.endpoint)) return null;
    const names = Object.keys(rules.endpoints);
    return { field: 'endpoint', problem: `no endpoint has this name${names.length === 0 ? '; webhooks in the configuration has none' : `; there are ${names.slice(0, 10).join(', ')}`}` };
  }
  const problem = addressProblem(target.url, rules);
  return problem === null ? null : { field: 'url', problem };
}

function addressProblem(text: string, { endpoints, signsOthers, allow, insideOf }: TargetRules): string | null {
  if (text.length > mostCharacters) return `expected a URL of at most ${mostCharacters} characters`;
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return 'expected an http or https URL';
  if (url.username !== '' || url.password !== '') return 'expected a URL without user and password';
  const inside = allow.some((origin) => URL.parse(origin)?.origin === url.origin) ? null : insideOfHost(url, insideOf);
  if (inside !== null) return `expected a public address, or one whose origin egress.allow lists; this one is ${inside}`;
  if (!signsOthers && !Object.values(endpoints).some((endpoint) => sameAddress(endpoint.url, text))) {
    return 'there is nothing to sign it with: set TREADLE_WEBHOOK_SECRET, or give the address a secret of its own under webhooks in the configuration';
  }
  return null;
}

/** The URL parser has read decimal, octal and hexadecimal forms as what they are. */
function insideOfHost({ hostname }: URL, insideOf: TargetRules['insideOf']): string | null {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  if (/^(?:.*\.)?localhost\.?$/.test(host)) return 'loopback';
  return host.includes(':') || /^\d+\.\d+\.\d+\.\d+$/.test(host) ? insideOf(host) : null;
}

/** Whether both are written for the same place. */
export function sameAddress(one: string, other: string): boolean {
  const parsed = URL.parse(one);
  return parsed !== null && parsed.href === URL.parse(other)?.href;
}
