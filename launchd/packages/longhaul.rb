# Homebrew formula of a tap. `.ci/release formula` fills in the address and the checksum of a release.
class Longhaul < Formula
  desc "Find out which protocol is faster for your work on your NAS"
  homepage "https://github.com/@REPOSITORY@"
  url "https://github.com/@REPOSITORY@/archive/refs/tags/v@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", "--features", "parquet,png", *std_cargo_args
    generate_completions_from_executable(bin/"longhaul", "completions")
    system bin/"longhaul", "man", "man"
    man1.install Dir["man/*.1"]
    inreplace "launchd/packages/org.longhaul.agent.plist", "@PREFIX@", HOMEBREW_PREFIX
    inreplace "launchd/packages/longhaul.service", "/usr/bin/", "#{opt_bin}/"
    prefix.install "launchd/packages/org.longhaul.agent.plist", "launchd/packages/longhaul.service"
  end

  # Both definitions are installed as they are. The service block of Homebrew has no keys that tie the agent to the session with the
  # user's mounts or limit the time of a stop, and makes units without a watchdog.
  service do
    name macos: "org.longhaul.agent", linux: "longhaul"
  end

  def caveats
    <<~EOS
      `longhaul init` chooses what to compare; then start the background service with one of:
        longhaul service install
        brew services start longhaul
      Before you uninstall, `longhaul service uninstall --purge` removes the service and its data. Test data on a share is
      removed with `longhaul targets clean NAME`.
    EOS
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/longhaul --version")
    system bin/"longhaul", "--database", testpath/"longhaul.sqlite", "try"
    assert_path_exists testpath/"longhaul.sqlite"
  end
end
