/**
 * What must never be shown: what came from the environment into the configuration, and what was written into it as it stands where only
 * secrets belong. Of what has parts, the parts too: whoever echoes a header mostly leaves out `Bearer`.
 */
import { isWebhookSecret } from '@treadle/core';
import type { CheckedConfig } from './schema/config.ts';

const telling = /key|token|secret|passw|credential|authorization|cookie/i;

export function knownSecrets(config: Pick<CheckedConfig, 'models' | 'mcp_servers' | 'http_tools' | 'webhooks'>, resolved: readonly string[]): readonly string[] {
  const credentials = Object.values(config.models).flatMap((model) => [...model.credentials, model.base_url]);
  const servers = Object.values(config.mcp_servers).flatMap(({ env, headers }) => [...tellingValues(env), ...tellingValues(headers)]);
  const tools = Object.values(config.http_tools).flatMap(({ headers }) => tellingValues(headers));
  const endpoints = Object.values(config.webhooks);
  const receivers = endpoints.flatMap(({ secret, previous_secret, headers }) => [secret, ...(previous_secret === undefined ? [] : [previous_secret]), ...tellingValues(headers)]);
  const addresses = [...Object.values(config.models).map((model) => model.base_url), ...Object.values(config.mcp_servers).flatMap(({ url }) => url ?? []), ...Object.values(config.http_tools).map((tool) => tool.url), ...endpoints.map(({ url }) => url)];
  const queries = addresses.flatMap((address) => queryOf(address).filter(([name]) => telling.test(name) || resolved.includes(address)).flatMap(([, value]) => value));
  // Of an address only what stands before the host is a secret.
  const whole = [...resolved, ...credentials, ...servers, ...tools, ...receivers].filter((value) => !URL.canParse(value) || resolved.includes(value));
  return [...new Set([...whole, ...[...whole, ...credentials].flatMap(partsOf), ...queries])].filter((value) => value !== '');
}

/** The password of an address, as it stands there and as it is sent; what follows the scheme of an `Authorization` header, or the prefix of a webhook's secret. */
export function partsOf(secret: string): readonly string[] {
  if (isWebhookSecret(secret)) return [secret.slice('whsec_'.length)];
  const userinfo = /^[a-z][a-z+.-]*:\/\/([^@/]*)@/i.exec(secret)?.[1];
  if (userinfo !== undefined) return spellings(userinfo.slice(userinfo.indexOf(':') + 1));
  const [, scheme, value] = /^(bearer|basic|token|apikey)\s+(\S+)$/i.exec(secret) ?? [];
  if (value === undefined) return [];
  if (scheme?.toLowerCase() !== 'basic') return [value];
  const pair = Buffer.from(value, 'base64').toString();
  return [value, pair, pair.slice(pair.indexOf(':') + 1)];
}

/** Of a query the names, and the values as they stand there and as they are meant. What is filled in for a call is no secret. */
function queryOf(address: string): (readonly [name: string, value: readonly string[]])[] {
  const query = /\?([^#]*)/.exec(address)?.[1] ?? '';
  return query.split('&').flatMap((pair) => {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(pair) ?? [];
    return value === '' || value.includes('{') ? [] : [[name, spellings(value)] as const];
  });
}

function tellingValues(named: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(named).filter(([name]) => telling.test(name)).map(([, value]) => value);
}

function spellings(password: string): readonly string[] {
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}
