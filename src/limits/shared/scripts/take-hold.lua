-- A bucket under the figures of a request, and holds that are added to it. No keys, no arguments.
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
