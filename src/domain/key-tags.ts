// Tags of keys: short words that their usage is counted under.

/** Each is one more to count under with every request. */
export const maxKeyTags = 10;
export const maxTagLength = 64;
/** It begins with a letter or digit; in it there may be `. _ : @ / = + -` as well. */
export const tagPattern = /^[A-Za-z0-9][A-Za-z0-9._:@/=+-]*$/;
/** The same but for what the gateway alone counts under: `asked:` and `gateway:`. */
export const givenTagPattern = /^(?!asked:|gateway:)[A-Za-z0-9][A-Za-z0-9._:@/=+-]*$/;
