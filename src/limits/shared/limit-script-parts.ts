// What the scripts of the shared limits have in common, in Lua: time, buckets, quotas, leases.
//
// A bucket is the one of domain/limits/rate-limit.ts, step by step, so that both decide the same; its history of holds is a list
// in the order of time, from index 8 on, three figures a place. All figures are whole numbers below 2^53, exact in Lua.

/** The first argument of each script is the prefix of all keys, the second the asking replica, the third the time in a test. */
export const common = `
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

export const fields = `
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

export const bucket = `
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

export const quota = `
local function quotaOf(text)
  if text then return unpacked(text) end
  return { 0, 0, 0, 0, 0 }
end

-- Unused for two hours, it is read anew when it is needed.
local function keepQuota(key, q) call('SET', key, pack(q), 'PX', '7200000') end
`;

export const takeHold = `
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

export const giveBack = `
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

export const heldOf = `
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
