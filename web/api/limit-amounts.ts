// The amounts of limits, written by scripts/generate.ts from src/domain/limits/amounts.ts: not to be edited.
export const limitAmounts = [
  {"wire":"requests_per_minute","label":"Requests per minute","unit":"requests","period":"minute","least":1,"most":1000000000,"account":false,"key":false},
  {"wire":"tokens_per_minute","label":"Tokens per minute","unit":"tokens","period":"minute","least":1,"most":1000000000,"account":false,"key":false},
  {"wire":"monthly_tokens","label":"Tokens per month","unit":"tokens","period":"month","least":0,"most":1000000000000000,"account":true,"key":true},
  {"wire":"monthly_spend","label":"Spend per month","unit":"USD","period":"month","least":0,"most":9000000,"account":true,"key":true},
] as const;

export type LimitAmount = (typeof limitAmounts)[number];
