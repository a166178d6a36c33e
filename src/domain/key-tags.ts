// Tags of keys, under which their usage is counted.

/** Each tag is counted with every request. */
export const maxKeyTags = 10;
export const maxTagLength = 64;
/** Begins with a letter or digit; then also `. _ : @ / = + -`. */
export const tagPattern = /^[A-Za-z0-9][A-Za-z0-9._:@/=+-]*$/;
/** The same without the prefixes reserved for the gateway: `asked:` and `gateway:`. */
export const givenTagPattern = /^(?!asked:|gateway:)[A-Za-z0-9][A-Za-z0-9._:@/=+-]*$/;
