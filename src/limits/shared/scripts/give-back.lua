-- A bucket under the figures that it has, and holds that leave it. Takes the key that it is given; no arguments of the script.
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
