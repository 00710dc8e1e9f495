# Reads the Homebrew formula with stand-ins for the methods of Homebrew that it calls, and checks the parts against each other.
#
#   ruby tests/packages/formula.rb FORMULA FOLDER    FOLDER: a copy of the sources, in which `install` may change files
require "pathname"

HOMEBREW_PREFIX = "/opt/homebrew".freeze
FIELDS = %i[desc homepage url sha256 license depends_on].freeze

# A folder of the installation. It records what is installed into it.
class Folder
  attr_reader :files

  def initialize(path)
    @path = path
    @files = []
  end

  def install(*files) = @files.concat(files.flatten)
  def /(name) = Pathname(@path) / name
  def to_s = @path
end

# Records the calls of the block `service`.
class Service
  attr_reader :names

  def name(**names) = @names = names
end

# The base class of formulas.
class Formula
  class << self
    attr_reader :fields, :service_block, :test_block

    FIELDS.each { |field| define_method(field) { |value| (@fields ||= {})[field] = value } }
    def service(&block) = @service_block = block
    def test(&block) = @test_block = block
  end

  attr_reader :commands, :completions, :folders

  def initialize
    @commands = []
    @folders = Hash.new { |all, name| all[name] = Folder.new("#{HOMEBREW_PREFIX}/#{name}") }
  end

  %i[bin man1 prefix].each { |name| define_method(name) { @folders[name] } }
  def opt_bin = Pathname("#{HOMEBREW_PREFIX}/opt/longhaul/bin")
  def std_cargo_args = ["--locked", "--root=#{prefix}", "--path=."]
  def system(*words) = @commands << words.map(&:to_s)
  def generate_completions_from_executable(*words) = @completions = words.map(&:to_s)

  def inreplace(file, before, after)
    text = File.read(file)
    raise "#{file} does not contain #{before}" unless text.include?(before)

    File.write(file, text.gsub(before, after))
  end
end

def check(what, found, expected)
  raise "#{what}: #{found.inspect}, expected #{expected.inspect}" unless expected === found

  puts "ok  #{what}: #{found.inspect}"
end

load File.expand_path(ARGV.fetch(0))
Dir.chdir(ARGV.fetch(1))
FIELDS.each { |field| check(field, Longhaul.fields[field], ->(value) { value && !value.to_s.include?("@") }) }
check("sha256", Longhaul.fields[:sha256], /\A\h{64}\z/)

formula = Longhaul.new
formula.install
check("build", formula.commands.first.first(2), %w[cargo install])
check("manual pages", formula.commands.last, ["/opt/homebrew/bin/longhaul", "man", "man"])
check("completions", formula.completions, ["/opt/homebrew/bin/longhaul", "completions"])
check("folders", formula.folders.keys, ->(names) { names.include?(:man1) })

# Homebrew looks for PREFIX/NAME.plist, on Linux for PREFIX/NAME.service, when the service block has a name and no command.
service = Service.new
service.instance_eval(&Longhaul.service_block)
installed = ->(name) { formula.prefix.files.find { |file| File.basename(file) == name } or raise "#{name} is not installed" }
label = service.names.fetch(:macos)
agent = File.read(installed.call("#{label}.plist"))
check("label", agent[%r{<key>Label</key>\s*<string>(.*?)</string>}, 1], label)
check("program", agent[%r{<key>ProgramArguments</key>\s*<array>\s*<string>(.*?)</string>\s*</array>}, 1],
      "#{HOMEBREW_PREFIX}/opt/longhaul/bin/longhauld")
unit = File.read(installed.call("#{service.names.fetch(:linux)}.service"))
check("program of the unit", unit[/^ExecStart=(.*)$/, 1], ":\"#{HOMEBREW_PREFIX}/opt/longhaul/bin/longhauld\"")
check("paths of the unit", unit.include?("/usr/bin"), false)
check("caveats", formula.caveats.lines.size, 1..10)
check("test", Longhaul.test_block, Proc)
