-- KEYS 7 to 13 of every script that works on one run.
local run = {
  ctl = KEYS[7], state = KEYS[8], events = KEYS[9], messages = KEYS[10], ledger = KEYS[11], inbox = KEYS[12], commands = KEYS[13],
}
