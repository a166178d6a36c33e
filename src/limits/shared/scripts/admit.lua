-- Admits a request, or says why not.
-- KEYS: 1 the hash of the replica's leases, then the buckets of requests, those of tokens, the quotas.
-- ARGV, after the common ones: session, number of the lease (empty: none; 'peek': nothing is counted), tokens, nano-USD, least
-- tokens, least nano-USD; of quotas that end the answer: number of their lease (empty: they are as all others), tokens, nano-USD,
-- least tokens, least nano-USD, whether more is asked for later; how many keys of each kind; limit and window in milliseconds of
-- each bucket; of each quota tokens, nano-USD and requests, or '-', of one that rolls its span in seconds, else 0, and which of
-- its amounts end an answer: 1 tokens, 2 nano-USD, 3 both, else 0.
-- Result: verdict, time in microseconds, tokens and nano-USD set aside, the same of quotas that end the answer, then backlog and
-- time of refill of each bucket, and of each quota: used and held tokens, used and held nano-USD, when it was read, or 0, or -1
-- where it was known before, used and held requests, when its window began,
-- or 0, and what the counter of that is called. To a stranger the verdict alone.
local session, lease = ARGV[4], ARGV[5]
local tokens, nano, minTokens, minNano = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local stopLease, stopTokens, stopNano = ARGV[10], tonumber(ARGV[11]), tonumber(ARGV[12])
local stopMinTokens, stopMinNano, grows = tonumber(ARGV[13]), tonumber(ARGV[14]), ARGV[15] == '1'
local requestCount, bucketCount, quotaCount = tonumber(ARGV[16]), ARGV[16] + ARGV[17], tonumber(ARGV[18])
local ADMITTED, REFUSED, UNREAD, STRANGER = 0, 1, 2, 3

if lease ~= 'peek' and call('HGET', KEYS[1], 's') ~= session then return { STRANGER } end
local values = {}
if #KEYS > 1 then values = call('MGET', unpack(KEYS, 2)) end
local buckets, changed, seen = {}, {}, {}
for i = 1, bucketCount do
  local key = KEYS[1 + i]
  local limit, window = tonumber(ARGV[17 + 2 * i]), tonumber(ARGV[18 + 2 * i])
  if seen[key] then buckets[i] = seen[key]
  else
    buckets[i], changed[i] = bucketOf(values[i], limit, window, i > requestCount)
    seen[key] = buckets[i]
  end
end
local quotas, counters, windows, begins = {}, {}, {}, {}
local tokenLimits, nanoLimits, requestLimits, stops = {}, {}, {}, {}
local isUnread = false
for i = 1, quotaCount do
  local at = 14 + 2 * bucketCount + 5 * i
  local key, value, span = KEYS[1 + bucketCount + i], values[bucketCount + i], tonumber(ARGV[at + 3])
  if span > 0 then
    local w, isOpen = windowOf(key, value)
    windows[i], begins[i] = w, w and not isOpen
    if begins[i] then windows[i] = { floor(now / 1000), micros, span } end
    if w then key = counterOf(key, windows[i]) end
    value = isOpen and call('GET', key)
  end
  quotas[i], counters[i] = quotaOf(value), key
  -- Nothing can have been used yet.
  if begins[i] then quotas[i][READ_AT] = micros end
  tokenLimits[i], nanoLimits[i], requestLimits[i] = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  stops[i] = stopLease ~= '' and tonumber(ARGV[at + 4]) or 0
  if quotas[i][READ_AT] == 0 then isUnread = true end
end

local function answer(verdict)
  local reply = { verdict, micros, tokens, nano, stopTokens, stopNano }
  local size = 6
  for i = 1, bucketCount do
    reply[size + 1], reply[size + 2] = buckets[i][BACKLOG], buckets[i][REFILLED]
    size = size + 2
  end
  for i = 1, quotaCount do
    local q, w = quotas[i], windows[i]
    reply[size + 1], reply[size + 2], reply[size + 3] = q[USED], q[HELD], q[USED_NANO]
    reply[size + 4], reply[size + 5] = q[HELD_NANO], q[READ_AT] == 0 and -q[FORGOTTEN] or q[READ_AT]
    reply[size + 6], reply[size + 7] = q[USED_REQUESTS], q[HELD_REQUESTS]
    reply[size + 8] = w and not begins[i] and w[START] or 0
    reply[size + 9] = w and w[NAME] or 0
    size = size + 9
  end
  return reply
end

local function keepChanged()
  for i = 1, bucketCount do if changed[i] then keep(KEYS[1 + i], buckets[i]) end end
end

if lease == 'peek' then
  keepChanged()
  return answer(isUnread and UNREAD or ADMITTED)
end

local isRefused = false
for i = 1, quotaCount do
  local q, needed, neededNano = quotas[i], minTokens, minNano
  if stops[i] > 0 then needed, neededNano = stopMinTokens, stopMinNano end
  if q[READ_AT] > 0 and (tokenLimits[i] and q[USED] + q[HELD] + needed > tokenLimits[i]
    or nanoLimits[i] and q[USED_NANO] + q[HELD_NANO] + neededNano > nanoLimits[i]
    or requestLimits[i] and q[USED_REQUESTS] + q[HELD_REQUESTS] + 1 > requestLimits[i]) then isRefused = true end
end
for i = 1, bucketCount do
  local b, needed = buckets[i], i > requestCount and minTokens or 1
  if b[BACKLOG] > (b[LIMIT] - needed) * b[WINDOW] then isRefused = true end
end
if isRefused or isUnread then
  keepChanged()
  return answer(isRefused and REFUSED or UNREAD)
end

for i = 1, requestCount do take(buckets[i], 1) end
for i = requestCount + 1, bucketCount do
  local b = buckets[i]
  tokens = min(tokens, max(0, floor((b[LIMIT] * b[WINDOW] - b[BACKLOG]) / b[WINDOW])))
end
local leftTokens, leftNano, running = math.huge, math.huge, 0
for i = 1, quotaCount do
  local q, flags = quotas[i], stops[i]
  local ofTokens = tokenLimits[i] and tokenLimits[i] - q[USED] - q[HELD]
  local ofNano = nanoLimits[i] and nanoLimits[i] - q[USED_NANO] - q[HELD_NANO]
  if flags == 0 then
    if ofTokens then tokens = min(tokens, ofTokens) end
    if ofNano then nano = min(nano, ofNano) end
  else
    running = max(running, q[HELD_REQUESTS])
    if flags ~= 2 and ofTokens then leftTokens = min(leftTokens, ofTokens) end
    if flags ~= 1 and ofNano then leftNano = min(leftNano, ofNano) end
  end
end
if grows then
  stopTokens = stopMinTokens + shareOf(stopTokens - stopMinTokens, leftTokens - stopMinTokens, running + 1)
  stopNano = stopMinNano + shareOf(stopNano - stopMinNano, leftNano - stopMinNano, running + 1)
else stopTokens, stopNano = min(stopTokens, leftTokens), min(stopNano, leftNano) end
local stopRec = { stopTokens, stopNano, 1, 0 }
local rec = { tokens, nano, 1, bucketCount - requestCount }
for i = requestCount + 1, bucketCount do
  local b, size = buckets[i], #rec
  rec[size + 1], rec[size + 2], rec[size + 3] = KEYS[1 + i], b[BORN], hold(b, tokens)
end
for i = 1, quotaCount do
  local q, key = quotas[i], counters[i]
  local ofLease = stops[i] > 0 and stopRec or rec
  q[HELD], q[HELD_NANO] = q[HELD] + ofLease[TOKENS], q[HELD_NANO] + ofLease[NANO]
  q[HELD_REQUESTS] = q[HELD_REQUESTS] + 1
  ofLease[#ofLease + 1] = key
  keepQuota(key, q)
  if begins[i] then
    keepWindow(KEYS[1 + bucketCount + i], windows[i])
    begins[i] = false
  end
end
for i = 1, bucketCount do keep(KEYS[1 + i], buckets[i]) end
if lease ~= '' then call('HSET', KEYS[1], lease, pack(rec)) end
if stopLease ~= '' then call('HSET', KEYS[1], stopLease, pack(stopRec)) end
return answer(ADMITTED)
