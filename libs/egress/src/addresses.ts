/**
 * Which addresses belong to the public internet. Everything else is somebody's inside: this machine, its network, the cloud's
 * metadata service. What is not known to be public is not.
 */
import ipaddr from 'ipaddr.js';

/** Public by its number, and yet the platform's own: Azure answers every virtual machine here. */
const platformOwn: readonly string[] = ['168.63.129.16'];

/** All of the IPv6 internet that has been given out; what lies outside is local, or leads to IPv4 by ways of its own. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/** NAT64, where the IPv4 address is the end. Networks' own prefixes have it elsewhere, and are no public addresses. */
const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/** Null for a public address, else what it is in a word or two. Takes addresses only, as a resolver gives them. */
export function insideOf(address: string): string | null {
  if (!ipaddr.isValid(address)) return 'no address';
  const parsed = ipaddr.parse(address);
  return parsed instanceof ipaddr.IPv4 ? insideOfV4(parsed) : insideOfV6(parsed as ipaddr.IPv6);
}

function insideOfV4(address: ipaddr.IPv4): string | null {
  if (platformOwn.includes(address.toString())) return 'the platform\'s own';
  return named(address.range());
}

/** An address that carries an IPv4 address leads there, so that one counts. */
function insideOfV6(address: ipaddr.IPv6): string | null {
  const range = address.range();
  if (range === 'ipv4Mapped') return insideOfV4(address.toIPv4Address());
  if (address.match(nat64)) return insideOfV4(ipaddr.fromByteArray(address.toByteArray().slice(12)) as ipaddr.IPv4);
  if (range !== 'unicast') return range.startsWith('rfc') ? 'reserved' : named(range);
  return address.match(globalUnicast) ? null : 'reserved';
}

function named(range: string): string | null {
  if (range === 'unicast') return null;
  return range.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
