/** @type {import('next').NextConfig} */
export default {
  serverExternalPackages: ['pawl'], // the server imports it as it is
};
