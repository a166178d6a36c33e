// The scripts that decide about shared limits: each is one atomic step in the server, by the server's clock.
import { bucket, common, fields, giveBack, heldOf, quota, takeHold } from "./limit-script-parts.ts";

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
