import { expect, test } from 'vitest';
import { insideOf } from './addresses.ts';

test.each([
  ['0.0.0.0', 'unspecified'], ['0.1.2.3', 'unspecified'], ['10.0.0.1', 'private'], ['100.64.0.1', 'carrier grade nat'], ['100.100.100.200', 'carrier grade nat'],
  ['127.0.0.1', 'loopback'], ['127.255.255.254', 'loopback'], ['169.254.169.254', 'link local'], ['172.16.0.1', 'private'], ['172.31.255.255', 'private'],
  ['192.168.1.1', 'private'], ['192.0.0.1', 'reserved'], ['192.0.2.1', 'reserved'], ['198.18.0.1', 'reserved'], ['198.51.100.1', 'reserved'], ['203.0.113.1', 'reserved'],
  ['224.0.0.1', 'multicast'], ['239.255.255.255', 'multicast'], ['240.0.0.1', 'reserved'], ['255.255.255.255', 'broadcast'], ['168.63.129.16', 'the platform\'s own'],
  ['::', 'unspecified'], ['::1', 'loopback'], ['fe80::1', 'link local'], ['fc00::1', 'unique local'], ['fd00:ec2::254', 'unique local'], ['ff02::1', 'multicast'],
  ['::ffff:127.0.0.1', 'loopback'], ['::ffff:7f00:1', 'loopback'], ['::ffff:10.0.0.1', 'private'], ['::ffff:169.254.169.254', 'link local'],
  ['64:ff9b::7f00:1', 'loopback'], ['64:ff9b::a9fe:a9fe', 'link local'], ['64:ff9b:1::1', 'reserved'], ['64:ff9b:1:a00:0:100:808:808', 'reserved'],
  ['::7f00:1', 'reserved'], ['fec0::1', 'deprecated site local'], ['2002:7f00:1::', '6to4'], ['2001::1', 'teredo'], ['2001:db8::1', 'reserved'], ['100::1', 'discard'], ['4000::1', 'reserved'],
  ['fe80::1%eth0', 'link local'],
])('%s is not public: %s', (address, what) => {
  expect(insideOf(address)).toBe(what);
});

test.each(['8.8.8.8', '1.1.1.1', '100.128.0.1', '172.32.0.1', '169.253.255.255', '2606:4700:4700::1111', '2a00:1450:4001:80b::200e', '::ffff:8.8.8.8', '64:ff9b::808:808'])('%s is public', (address) => {
  expect(insideOf(address)).toBeNull();
});

test.each(['', 'localhost', '999.1.1.1', '1.2.3.4:80', 'http://8.8.8.8'])('%j is no address, and so not public', (text) => {
  expect(insideOf(text)).not.toBeNull();
});
