import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/guest-js/**/*.test.ts'],
    environment: 'node',
  },
});
