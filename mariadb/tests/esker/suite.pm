package My::Suite::Esker;

@ISA = qw(My::Suite);

sub is_default { 0 }

bless { };
