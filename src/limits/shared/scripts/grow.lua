-- Sets aside more for an answer of quotas that end it, or what they have left.
-- KEYS: none. ARGV, after the common ones: session, number of their lease, tokens, nano-USD, how many quotas; of each its counter,
-- tokens and nano-USD or '-', and which of them end an answer: 1 tokens, 2 nano-USD, 3 both.
-- Result: 0, the time in microseconds, tokens and nano-USD that were set aside more, and of each quota before that: used and held
-- tokens, used and held nano-USD, when it was read, or 0, used and held requests, and twice 0. Where one is not read nothing is
-- set aside. To a stranger 3 alone. A counter that rolls and was told by a replica alone is that of the window that is open.
local leases = prefix .. 'leases:' .. me
if call('HGET', leases, 's') ~= ARGV[4] then return { 3 } end
local id, tokens, nano, count = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local value = call('HGET', leases, id)
local rec = value and unpacked(value)
-- It goes on where it began: its window may have ended since.
local isWhole = rec and #rec - quotasOf(rec) + 1 == count
local keys, reply = {}, {}
local leftTokens, leftNano, running, isUnread = math.huge, math.huge, 0, false
for i = 1, count do
  local at, size = 5 + 4 * i, #reply
  local key = isWhole and rec[quotasOf(rec) + i - 1] or counterAt(ARGV[at])
  local q, flags = quotaOf(key and call('GET', key)), tonumber(ARGV[at + 3])
  local ofTokens, ofNano = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  if key then keys[#keys + 1] = key end
  if q[READ_AT] == 0 then isUnread = true end
  running = max(running, q[HELD_REQUESTS])
  if flags ~= 2 and ofTokens then leftTokens = min(leftTokens, ofTokens - q[USED] - q[HELD]) end
  if flags ~= 1 and ofNano then leftNano = min(leftNano, ofNano - q[USED_NANO] - q[HELD_NANO]) end
  reply[size + 1], reply[size + 2], reply[size + 3], reply[size + 4] = q[USED], q[HELD], q[USED_NANO], q[HELD_NANO]
  reply[size + 5], reply[size + 6], reply[size + 7] = q[READ_AT], q[USED_REQUESTS], q[HELD_REQUESTS]
  reply[size + 8], reply[size + 9] = 0, 0
end
tokens, nano = shareOf(tokens, leftTokens, running), shareOf(nano, leftNano, running)
if isUnread then tokens, nano = 0, 0 end
-- One that is forgotten holds this much from here on: the rest is told by who has it.
if not rec then
  rec = { 0, 0, 0, 0 }
  for i = 1, #keys do rec[#rec + 1] = keys[i] end
end
local heldTokens, heldNano, heldRequests = heldBy(rec)
rec[TOKENS], rec[NANO], rec[COUNTS] = rec[TOKENS] + tokens, rec[NANO] + nano, 1
for i = quotasOf(rec), #rec do
  changeHeld(rec[i], rec[TOKENS] - heldTokens, rec[NANO] - heldNano, 1 - heldRequests)
end
call('HSET', leases, id, pack(rec))
local answer = { 0, micros, tokens, nano }
for i = 1, #reply do answer[#answer + 1] = reply[i] end
return answer
