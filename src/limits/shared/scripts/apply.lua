-- Carries out what happened to leases and figures, in order and each once.
-- KEYS: none. ARGV, after the common ones: the number of the first operation and how many there are, then of each its name, how
-- many arguments it has, and these. Those with a number that was seen before are skipped.
-- Result: OK.
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
  local heldTokens, heldNano, heldRequests = heldBy(rec)
  for i = quotasOf(rec), #rec do changeHeld(rec[i], -heldTokens, -heldNano, -heldRequests) end
end

local function addUsed(key, q, tokens, nano, requests)
  q[USED], q[USED_NANO] = q[USED] + tokens, q[USED_NANO] + nano
  q[USED_REQUESTS] = q[USED_REQUESTS] + requests
  keepQuota(key, q)
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
        if isLimited == '1' then rec[#rec + 1] = counterAt(key) end
      end
    end
    local heldTokens, heldNano, heldRequests = heldBy(rec)
    rec[TOKENS], rec[NANO], rec[COUNTS] = max(rec[TOKENS], tokens), max(rec[NANO], nano), 1
    for i = quotasOf(rec), #rec do
      changeHeld(rec[i], rec[TOKENS] - heldTokens, rec[NANO] - heldNano, 1 - heldRequests)
    end
    call('HSET', leases, id, pack(rec))
    return
  end
  if rec then
    endLease(rec, tokens)
    call('HDEL', leases, id)
  end
  if name == 'release' then return end
  for i = 1, quotaCount do
    local told, isLimited = text(), text()
    local key = counterAt(told)
    local q = quotaOf(key and call('GET', key))
    if q[READ_AT] > 0 then addUsed(key, q, tokens, nano, 1)
    -- Nobody asks for one that limits nothing.
    elseif isLimited == '1' then noteLate(told, micros, tokens, nano, 1) end
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

-- load: read from the ledger, from a moment on; not by an earlier session, as what was settled since counted nowhere. forget: read
-- it again.
local function onQuota(name, size, counter)
  local key = text()
  key = counter or key
  local q = quotaOf(call('GET', key))
  if name == 'load' then
    local tokens, nano, session, requests, readFrom = number(), number(), text(), number(), number()
    if q[READ_AT] > 0 or call('HGET', leases, 's') ~= session then return end
    if readFrom <= 0 or readFrom > micros then readFrom = micros end
    local lateTokens, lateNano, lateRequests = lateOf(key, readFrom)
    q[USED], q[USED_NANO], q[READ_AT], q[FORGOTTEN] = tokens + lateTokens, nano + lateNano, readFrom, 0
    q[USED_REQUESTS] = requests + lateRequests
  elseif q[READ_AT] == 0 then return
  else q[READ_AT], q[FORGOTTEN] = 0, 1 end
  keepQuota(key, q)
end

-- use: used elsewhere while nobody could be asked here, by moment: when, tokens, nano-USD, requests. The ledger had it where it was
-- read long enough afterwards.
local function onUse(size)
  local told = text()
  local key = counterAt(told)
  local q = quotaOf(key and call('GET', key))
  for _ = 1, (size - 1) / 4 do
    local moment, tokens, nano, requests = number(), number(), number(), number()
    if q[READ_AT] == 0 then noteLate(told, moment, tokens, nano, requests)
    elseif moment >= q[READ_AT] - WRITTEN then addUsed(key, q, tokens, nano, requests) end
  end
  -- A window may have begun that nobody has told of: it is read from the ledger.
  if not key then call('DEL', told) end
end

-- begin: the ledger says when the window that is open began, 0: none is. All else is about the counter of the window that is open;
-- where none is, one that nobody has told of may have begun: that is read from the ledger.
local function onWindow(name, size)
  if name ~= 'begin' then
    local key = ARGV[at + 1]
    local counter = counterAt(key)
    if counter then onQuota(name, size, counter) else call('DEL', key) end
    return
  end
  local key, start, span = text(), number(), number()
  if call('EXISTS', key) == 0 then keepWindow(key, { start == 0 and -span or start, start * 1000000, span }) end
end

local last = tonumber(call('HGET', leases, '#') or 0)
for i = first, first + count - 1 do
  local name, size = text(), number()
  local from = at
  if i > last then
    if name == 'settle' or name == 'extend' or name == 'release' then onLease(name)
    elseif name == 'charge' then charge()
    elseif name == 'use' then onUse(size)
    elseif isRolling(ARGV[at + 1]) then onWindow(name, size)
    else onQuota(name, size) end
  end
  at = from + size
end
if first + count - 1 > last then call('HSET', leases, '#', string.format('%.0f', first + count - 1)) end
return redis.status_reply('OK')
