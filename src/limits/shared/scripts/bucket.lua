-- A bucket is the one of domain/limits/rate-limit.ts, step by step, so that both decide the same; its history of holds is a
-- list in the order of time, from FIRST on, SIZE figures a place. Takes the key that it is given; no arguments of the script.
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
