// The scripts that decide about shared limits, in Lua: each is one atomic step in the server, by the server's clock.
//
// A bucket is the one of domain/rate-limit.ts, step by step, so that both decide the same; its history of holds is a list
// in the order of time, from index 8 on, three figures a place. All figures are whole numbers below 2^53, exact in Lua.

/** The first argument of each script is the prefix of all keys, the second the asking replica, the third the time in a test. */
const common = `
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local call, pack, unpacked = redis.call, cmsgpack.pack, cmsgpack.unpack
local prefix, me = ARGV[1], ARGV[2]
local micros = tonumber(ARGV[3])
if not micros then
  local time = call('TIME')
  micros = time[1] * 1000000 + time[2]
end
local now = micros / 1000
`;

const fields = `
-- Fields of a bucket; those of requests end with the window.
local BACKLOG, REFILLED, LIMIT, WINDOW, LOWEST, BORN, LAST, FIRST = 1, 2, 3, 4, 5, 6, 7, 8
-- Of a place in it, from its beginning: which hold made it, its rise, how many open holds share it.
local RISE, OPEN, SIZE = 1, 2, 3
local MOST_PLACES = 128
-- Of a quota.
local USED, USED_NANO, HELD, HELD_NANO, READ_AT = 1, 2, 3, 4, 5
-- Of a lease; then for each token bucket key, birth and hold, then the keys of quotas that hold something for it.
local TOKENS, NANO, COUNTS, BUCKETS, REST = 1, 2, 3, 4, 5
`;

const bucket = `
local function removePlace(b, at)
  local size = #b
  for i = at, size - SIZE do b[i] = b[i + SIZE] end
  for i = size, size - SIZE + 1, -1 do b[i] = nil end
end

local function mergeOlder(b, at)
  while at > FIRST and b[at + RISE] <= 0 do
    local older = at - SIZE
    b[older + RISE] = b[older + RISE] + b[at + RISE]
    b[older + OPEN] = b[older + OPEN] + b[at + OPEN]
    removePlace(b, at)
    at = older
  end
  return at
end

local function refill(b)
  local tick = floor(now)
  -- The server's clock was set back: nothing is lost but the refill of that while.
  if b[REFILLED] > tick + 1 then b[REFILLED] = tick end
  if b[BACKLOG] == 0 or tick <= b[REFILLED] then return end
  b[BACKLOG] = max(0, b[BACKLOG] - (tick - b[REFILLED]) * b[LIMIT])
  b[REFILLED] = tick
  local size = #b
  if size < FIRST or b[LOWEST] <= b[BACKLOG] then return end
  local newest = size - SIZE + 1
  b[newest + RISE] = b[newest + RISE] - (b[LOWEST] - b[BACKLOG])
  b[LOWEST] = b[BACKLOG]
  mergeOlder(b, newest)
end

local function newBucket(limit, window, isOfTokens)
  if isOfTokens then return { 0, 0, limit, window, 0, micros, 0 } end
  return { 0, 0, limit, window }
end

-- Full again it is the same as a new one; until then, and for a minute, it is kept.
local function keep(key, b)
  local ms = ceil(b[BACKLOG] / b[LIMIT]) + 1000
  call('SET', key, pack(b), 'PX', ms <= 60000 and '60000' or string.format('%.0f', ms))
end

local function take(b, count)
  if b[BACKLOG] == 0 then b[REFILLED] = ceil(now) end
  b[BACKLOG] = b[BACKLOG] + count * b[WINDOW]
end
`;

const quota = `
local function quotaOf(text)
  if text then return unpacked(text) end
  return { 0, 0, 0, 0, 0 }
end

-- Unused for two hours, it is read anew when it is needed.
local function keepQuota(key, q) call('SET', key, pack(q), 'PX', '7200000') end
`;

const takeHold = `
-- The bucket, refilled, under these figures; and whether that has to be kept even where nothing is taken: they are others
-- than before, or the server's clock was set back.
local function bucketOf(text, limit, window, isOfTokens)
  if not text then return newBucket(limit, window, isOfTokens), false end
  local b = unpacked(text)
  local isAhead = b[REFILLED] > now + 1
  refill(b)
  if b[LIMIT] == limit and b[WINDOW] == window then return b, isAhead end
  local scale = limit / b[LIMIT]
  b[BACKLOG] = ceil(b[BACKLOG] * scale)
  if isOfTokens then
    b[LOWEST] = 0
    for at = FIRST, #b, SIZE do
      b[at + RISE] = floor(b[at + RISE] * scale)
      b[LOWEST] = b[LOWEST] + b[at + RISE]
    end
  end
  b[LIMIT], b[WINDOW] = limit, window
  return b, true
end

-- Two neighbours become one place, as if both saw the lowest backlog of the older: less comes back, never more.
local function shorten(b)
  local least
  for at = FIRST + SIZE, #b, SIZE do
    if not least or b[at + RISE] < b[least + RISE] then least = at end
  end
  b[least - SIZE + OPEN] = b[least - SIZE + OPEN] + b[least + OPEN]
  local newer = least + SIZE
  if newer <= #b then b[newer + RISE] = b[newer + RISE] + b[least + RISE]
  else b[LOWEST] = b[LOWEST] - b[least + RISE] end
  removePlace(b, least)
end

local function hold(b, count)
  take(b, count)
  local size = #b
  local rise = b[BACKLOG]
  if size >= FIRST then rise = rise - b[LOWEST] end
  b[LAST] = b[LAST] + 1
  b[size + 1], b[size + 2], b[size + 3] = b[LAST], rise, 1
  b[LOWEST] = b[BACKLOG]
  if size - FIRST + 1 >= MOST_PLACES * SIZE then shorten(b) end
  return b[LAST]
end
`;

const giveBack = `
-- Under the figures that it has; those of the request may be older.
local function bucketAt(key, limit, window, isOfTokens)
  local value = call('GET', key)
  if not value then return newBucket(limit, window, isOfTokens) end
  local b = unpacked(value)
  refill(b)
  return b
end

-- A place that is gone was merged into the next older one that is left.
local function release(b, which, unused)
  local at = #b - SIZE + 1
  while at >= FIRST and b[at] > which do at = at - SIZE end
  if at < FIRST then return end
  local most, lowest, place = unused * b[WINDOW], 0, at
  while place >= FIRST and lowest < most do
    lowest = lowest + b[place + RISE]
    place = place - SIZE
  end
  local refund = min(lowest, most)
  b[at + RISE] = b[at + RISE] - refund
  b[LOWEST] = b[LOWEST] - refund
  b[BACKLOG] = b[BACKLOG] - refund
  b[at + OPEN] = b[at + OPEN] - 1
  at = mergeOlder(b, at)
  if b[at + OPEN] > 0 then return end
  local newer = at + SIZE
  if newer <= #b then b[newer + RISE] = b[newer + RISE] + b[at + RISE]
  else b[LOWEST] = b[LOWEST] - b[at + RISE] end
  removePlace(b, at)
end
`;

const heldOf = `
local function changeHeld(key, tokens, nano)
  if tokens == 0 and nano == 0 then return end
  local q = quotaOf(call('GET', key))
  q[HELD], q[HELD_NANO] = max(0, q[HELD] + tokens), max(0, q[HELD_NANO] + nano)
  keepQuota(key, q)
end

-- What a lease holds of quotas; nothing while its replica counts as dead.
local function heldBy(rec)
  if rec[COUNTS] == 1 then return rec[TOKENS], rec[NANO] end
  return 0, 0
end

local function quotasOf(rec) return REST + rec[BUCKETS] * 3 end
`;

/**
 * KEYS: the hash of the replica's leases, then the buckets of requests, those of tokens, the quotas. ARGV, after the common ones:
 * session, number of the lease (empty: none; `peek`: nothing is counted), tokens, nano-USD, least tokens, least nano-USD;
 * how many keys of each kind; limit and window in milliseconds of each bucket, tokens and nano-USD of each quota, or `-`.
 *
 * Gives verdict, time in microseconds, tokens and nano-USD set aside, then backlog and time of refill of each bucket, and of
 * each quota: used and held tokens, used and held nano-USD, when it was read, or 0.
 */
export const admitScript = `${common}${fields}${bucket}${takeHold}${quota}
local session, lease = ARGV[4], ARGV[5]
local tokens, nano, minTokens, minNano = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local requestCount, bucketCount, quotaCount = tonumber(ARGV[10]), ARGV[10] + ARGV[11], tonumber(ARGV[12])
local ADMITTED, REFUSED, UNREAD, STRANGER = 0, 1, 2, 3

if lease ~= 'peek' and call('HGET', KEYS[1], 's') ~= session then return { STRANGER } end
local values = {}
if #KEYS > 1 then values = call('MGET', unpack(KEYS, 2)) end
local buckets, changed, seen = {}, {}, {}
for i = 1, bucketCount do
  local key = KEYS[1 + i]
  local limit, window = tonumber(ARGV[11 + 2 * i]), tonumber(ARGV[12 + 2 * i])
  if seen[key] then buckets[i] = seen[key]
  else
    buckets[i], changed[i] = bucketOf(values[i], limit, window, i > requestCount)
    seen[key] = buckets[i]
  end
end
local quotas, tokenLimits, nanoLimits = {}, {}, {}
local isUnread = false
for i = 1, quotaCount do
  local at = 11 + 2 * (bucketCount + i)
  quotas[i] = quotaOf(values[bucketCount + i])
  tokenLimits[i], nanoLimits[i] = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  if quotas[i][READ_AT] == 0 then isUnread = true end
end

local function answer(verdict)
  local reply = { verdict, micros, tokens, nano }
  local size = 4
  for i = 1, bucketCount do
    reply[size + 1], reply[size + 2] = buckets[i][BACKLOG], buckets[i][REFILLED]
    size = size + 2
  end
  for i = 1, quotaCount do
    local q = quotas[i]
    reply[size + 1], reply[size + 2], reply[size + 3] = q[USED], q[HELD], q[USED_NANO]
    reply[size + 4], reply[size + 5] = q[HELD_NANO], q[READ_AT]
    size = size + 5
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
  local q = quotas[i]
  if q[READ_AT] > 0 and (tokenLimits[i] and q[USED] + q[HELD] + minTokens > tokenLimits[i]
    or nanoLimits[i] and q[USED_NANO] + q[HELD_NANO] + minNano > nanoLimits[i]) then isRefused = true end
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
for i = 1, quotaCount do
  local q = quotas[i]
  if tokenLimits[i] then tokens = min(tokens, tokenLimits[i] - q[USED] - q[HELD]) end
  if nanoLimits[i] then nano = min(nano, nanoLimits[i] - q[USED_NANO] - q[HELD_NANO]) end
end
local rec = { tokens, nano, 1, bucketCount - requestCount }
for i = requestCount + 1, bucketCount do
  local b, size = buckets[i], #rec
  rec[size + 1], rec[size + 2], rec[size + 3] = KEYS[1 + i], b[BORN], hold(b, tokens)
end
for i = 1, quotaCount do
  local q, key = quotas[i], KEYS[1 + bucketCount + i]
  q[HELD], q[HELD_NANO] = q[HELD] + tokens, q[HELD_NANO] + nano
  rec[#rec + 1] = key
  keepQuota(key, q)
end
for i = 1, bucketCount do keep(KEYS[1 + i], buckets[i]) end
if lease ~= '' then call('HSET', KEYS[1], lease, pack(rec)) end
return answer(ADMITTED)
`;

/**
 * What happened to leases and figures, in order and each once: ARGV has the number of the first operation and how many there
 * are, then of each its name, how many arguments it has, and these. Those with a number that was seen before are skipped.
 */
export const applyScript = `${common}${fields}${bucket}${quota}${giveBack}${heldOf}
local first, count = tonumber(ARGV[4]), tonumber(ARGV[5])
local leases = prefix .. 'leases:' .. me
local at = 5
local function text() at = at + 1; return ARGV[at] end
local function number() at = at + 1; return tonumber(ARGV[at]) end

local function takeMore(more, rules)
  if more <= 0 then return end
  for _, rule in ipairs(rules) do
    local b = bucketAt(rule[1], rule[2], rule[3], true)
    take(b, more)
    keep(rule[1], b)
  end
end

-- Gives back what it did not use, of buckets and quotas.
local function endLease(rec, tokens)
  for i = 1, rec[BUCKETS] do
    local from = REST + (i - 1) * 3
    local value = call('GET', rec[from])
    local b = value and unpacked(value)
    -- Another than that of the lease was empty in between: nothing comes back.
    if b and b[BORN] == rec[from + 1] then
      refill(b)
      release(b, rec[from + 2], max(rec[TOKENS], tokens) - tokens)
      keep(rec[from], b)
    end
  end
  local heldTokens, heldNano = heldBy(rec)
  for i = quotasOf(rec), #rec do changeHeld(rec[i], -heldTokens, -heldNano) end
end

-- extend: the lease holds at least this much; where nothing is known of it, it holds that of quotas from here on.
-- settle: it ends, and used this much. release: it ends; what it used is told in another way, or is nothing.
local function onLease(name)
  local id, tokens, nano, rules = text(), number(), number(), {}
  for i = 1, number() do rules[i] = { text(), number(), number() } end
  local value = call('HGET', leases, id)
  local rec = value and unpacked(value)
  if rec then takeMore(tokens - rec[TOKENS], rules) end
  local quotaCount = number()
  if name == 'extend' then
    if not rec then
      rec = { 0, 0, 0, 0 }
      for i = 1, quotaCount do
        local key, isLimited = text(), text()
        if isLimited == '1' then rec[#rec + 1] = key end
      end
    end
    local heldTokens, heldNano = heldBy(rec)
    rec[TOKENS], rec[NANO], rec[COUNTS] = max(rec[TOKENS], tokens), max(rec[NANO], nano), 1
    for i = quotasOf(rec), #rec do changeHeld(rec[i], rec[TOKENS] - heldTokens, rec[NANO] - heldNano) end
    call('HSET', leases, id, pack(rec))
    return
  end
  if rec then
    endLease(rec, tokens)
    call('HDEL', leases, id)
  end
  if name == 'release' then return end
  for i = 1, quotaCount do
    local key = text()
    at = at + 1
    local q = quotaOf(call('GET', key))
    -- Where it is not read yet, the ledger's figures will stand in its place, this request included.
    if q[READ_AT] > 0 then
      q[USED], q[USED_NANO] = q[USED] + tokens, q[USED_NANO] + nano
      keepQuota(key, q)
    end
  end
end

-- Taken elsewhere, while nobody could be asked here. Requests never owe.
local function charge()
  local key, limit, window, amount, isOfTokens = text(), number(), number(), number(), text() == '1'
  local b = bucketAt(key, limit, window, isOfTokens)
  take(b, amount)
  if not isOfTokens then b[BACKLOG] = min(b[BACKLOG], b[LIMIT] * b[WINDOW]) end
  keep(key, b)
end

-- use: used elsewhere, after a moment. What was read from the ledger since then may have it already, or not: read it again.
-- load: read from the ledger; not by an earlier session, as what was settled since counted nowhere. forget: read it again.
local function onQuota(name)
  local key = text()
  local q = quotaOf(call('GET', key))
  if name == 'load' then
    local tokens, nano, session = number(), number(), text()
    if q[READ_AT] > 0 or call('HGET', leases, 's') ~= session then return end
    q[USED], q[USED_NANO], q[READ_AT] = tokens, nano, micros
  elseif q[READ_AT] == 0 then return
  elseif name == 'forget' then q[READ_AT] = 0
  else
    local tokens, nano, since = number(), number(), number()
    if q[READ_AT] < since then q[USED], q[USED_NANO] = q[USED] + tokens, q[USED_NANO] + nano
    else q[READ_AT] = 0 end
  end
  keepQuota(key, q)
end

local last = tonumber(call('HGET', leases, '#') or 0)
for i = first, first + count - 1 do
  local name, size = text(), number()
  local from = at
  if i > last then
    if name == 'settle' or name == 'extend' or name == 'release' then onLease(name)
    elseif name == 'charge' then charge()
    else onQuota(name) end
  end
  at = from + size
end
if first + count - 1 > last then call('HSET', leases, '#', string.format('%.0f', first + count - 1)) end
return redis.status_reply('OK')
`;

/**
 * A replica says that it is there. ARGV: the number of its session, or nothing where it only goes on; after how many
 * milliseconds another one is dead. Gives the time, how many there are, whether this one counted as dead or unknown, since
 * when the server remembers, the last operation that it had of it, and the dead ones.
 */
export const beatScript = `${common}
local session, graceMs = ARGV[4], tonumber(ARGV[5])
local replicas, leases = prefix .. 'replicas', prefix .. 'leases:' .. me
local time = floor(now)
local born = call('GET', prefix .. 'born')
if not born then
  born = string.format('%.0f', micros)
  call('SET', prefix .. 'born', born)
end
local isNew = call('ZADD', replicas, time, me)
if session ~= '' then call('HSET', leases, 's', session) end
call('PERSIST', leases)
-- The clock was set back: who beats from here on counts from here on.
for _, ahead in ipairs(call('ZRANGEBYSCORE', replicas, '(' .. (time + graceMs), '+inf')) do call('ZADD', replicas, time, ahead) end
local dead = call('ZRANGEBYSCORE', replicas, '-inf', time - graceMs, 'LIMIT', 0, 10)
local last = call('HGET', leases, '#') or '0'
return { micros, call('ZCARD', replicas) - #dead, isNew, born, last, dead }
`;

/**
 * Drops some of what a dead replica holds. ARGV: that replica, a cursor, after how many milliseconds one is dead. Gives the
 * next cursor. The records stay for an hour: should it come back, it finds what it held of the buckets.
 */
export const sweepScript = `${common}${fields}${quota}${heldOf}
local dead, cursor, graceMs = ARGV[4], ARGV[5], tonumber(ARGV[6])
local replicas, leases = prefix .. 'replicas', prefix .. 'leases:' .. dead
local seen = tonumber(call('ZSCORE', replicas, dead) or 0)
if seen > now - graceMs then return '0' end
call('HDEL', leases, 's')
local found = call('HSCAN', leases, cursor, 'COUNT', 100)
for i = 1, #found[2], 2 do
  local id = found[2][i]
  if id ~= '#' then
    local rec = unpacked(found[2][i + 1])
    if rec[COUNTS] == 1 then
      for at = quotasOf(rec), #rec do changeHeld(rec[at], -rec[TOKENS], -rec[NANO]) end
      rec[COUNTS] = 0
      call('HSET', leases, id, pack(rec))
    end
  end
end
if found[1] == '0' then
  call('ZREM', replicas, dead)
  call('PEXPIRE', leases, 3600000)
end
return found[1]
`;

/** A replica ends in order. Where it left something open, that is dropped as of a dead one. */
export const leaveScript = `${common}
local leases = prefix .. 'leases:' .. me
if call('HLEN', leases) > call('HEXISTS', leases, 's') + call('HEXISTS', leases, '#') then
  return redis.status_reply('OPEN')
end
call('ZREM', prefix .. 'replicas', me)
call('DEL', leases)
return redis.status_reply('OK')
`;
